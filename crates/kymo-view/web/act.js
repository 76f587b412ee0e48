// What people can do, for what is drawn before the rest of the page is there: `actions.js` says how.

/** @type {import("./actions.js").Actions} */
export const actions = /** @type {any} */ ({});

/** Says something to people who do not see the page. @param {string} words */
export function say(words) {
  const live = document.getElementById("live");
  if (live) live.textContent = words;
}

/** Shows something in the bar for a while. @param {string} words */
export function tell(words) {
  const status = document.getElementById("status");
  if (status) {
    status.textContent = words;
    status.dataset.until = String(Date.now() + 4000);
  }
  say(words);
}
