// What is under way: requests, and work that waits for a pause. Who looks at the page from outside waits until it is idle.

let count = 0;

/** Whether nothing is under way. */
export const isIdle = () => count === 0;

/** Counts work as long as it takes. @template T @param {Promise<T>} work @returns {Promise<T>} */
export async function counted(work) {
  count++;
  try {
    return await work;
  } finally {
    count--;
  }
}

/** Waits for so many milliseconds. @param {number} time */
export const sleep = (time) => counted(new Promise((done) => setTimeout(done, time)));

/** Work that is done once, when it has not been asked for again for a while. */
export class Delayed {
  #timer = 0;

  /** @param {number} pause @param {() => void} work */
  constructor(pause, work) {
    this.pause = pause;
    this.work = work;
  }

  ask() {
    this.cancel();
    count++;
    this.#timer = window.setTimeout(() => {
      this.cancel();
      this.work();
    }, this.pause);
  }

  cancel() {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    count--;
  }
}
