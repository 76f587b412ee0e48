// Conditions as `--where` takes them, for pages that stand alone: read, and asked of the JSON of events.
// What the JSON does not hold (levels of events, names of streams, packet headers) needs `kymo view`.

/** @typedef {(event: any) => boolean} Condition */
/** @typedef {{kind: "name"|"quoted"|"number"|"text"|"sign"|"end", value: any, at: number}} Word */
/** @typedef {(event: any) => any} Operand the value of an event, `undefined` if it has none */

/** Names of scopes in front of a field, and where the JSON has these. */
const SCOPE_NAMES = /** @type {[string[], string][]} */ ([
  [["payload"], "payload"], [["specific_context"], "specific_context"], [["common_context"], "common_context"], [["packet_context"], "packet_context"],
  [["event", "fields"], "payload"], [["event", "payload"], "payload"], [["event", "context"], "specific_context"],
  [["stream", "event", "context"], "common_context"], [["stream", "packet", "context"], "packet_context"],
]);
const SEARCHED = ["payload", "specific_context", "common_context", "packet_context"];

/** What is known of events without their fields, by the keys of the JSON; samples have others. @type {Record<string, string[]>} */
const PROPERTIES = {
  "event.name": ["event", "archive"], "event.kind": ["kind"], "event.id": ["event_class", "archive_index"], "event.time": ["timestamp"],
  "stream.class": ["stream_class"], "stream.id": ["stream"], "trace.name": ["trace"], "recording.path": ["recording"],
};
const ABSENT = ["event.level", "stream.name"];

/** Parentheses and `not`s may be nested this deep. */
const DEEPEST = 64;

const SIGNS = ["...", "..", "==", "!=", "!~", "<=", ">=", "&&", "||", "=~", "(", ")", "[", "]", ",", ".", "=", "<", ">", "~", "!", "-"];

/** What JSON has for an event; integers beyond 2^53 keep all of their digits. @param {string} json @returns {any} */
export const readEvent = (json) => JSON.parse(json, /** @type {any} */ ((/** @type {string} */ _key, /** @type {any} */ value, /** @type {any} */ context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value));

/** A pattern of a whole text, with `*`, `?`, sets and `\`. @param {string} glob */
export function patternOf(glob) {
  const plain = (/** @type {string} */ char) => char.replace(/[.+^${}()|[\]\\*?/-]/g, "\\$&");
  let pattern = "";
  const chars = [...glob];
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at];
    if (char === "*") pattern += ".*";
    else if (char === "?") pattern += ".";
    else if (char === "\\") pattern += plain(chars[++at] ?? "\\");
    else if (char === "[") {
      const isNot = chars[at + 1] === "!" || chars[at + 1] === "^";
      const from = at + (isNot ? 2 : 1);
      // A `]` that comes first stands for itself.
      const end = chars.indexOf("]", from + 1);
      if (end < 0) pattern += "\\[";
      else {
        let set = "";
        for (let member = from; member < end; member++) {
          const isRange = chars[member + 1] === "-" && member + 2 < end;
          if (chars[member] === "\\" && member + 1 < end) set += plain(chars[++member]);
          else if (!isRange) set += plain(chars[member]);
          else {
            // A range whose ends are in the wrong order holds nothing.
            if (chars[member] <= chars[member + 2]) set += `${plain(chars[member])}-${plain(chars[member + 2])}`;
            member += 2;
          }
        }
        pattern += set ? `[${isNot ? "^" : ""}${set}]` : isNot ? "." : "(?!)";
        at = end;
      }
    } else pattern += plain(char);
  }
  return new RegExp(`^${pattern}$`, "su");
}

/** @param {string} source @param {number} at @param {string} message */
const wrong = (source, at, message) => new Error(`${message}\n${source}\n${" ".repeat([...source.slice(0, at)].length)}^`);

const NAME = /^[\p{Alphabetic}_][\p{Alphabetic}\p{N}_]*/u;
const NUMBER = /^(?:0[xX][0-9a-zA-Z_]*|0[oO][0-9a-zA-Z_]*|0[bB][0-9a-zA-Z_]*|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?[0-9a-zA-Z_]*)/;
const ESCAPES = /** @type {Record<string, string>} */ ({ n: "\n", t: "\t", r: "\r", 0: "\0", "\\": "\\", '"': '"', "'": "'" });

/** @param {string} source @returns {Word[]} */
function wordsOf(source) {
  /** @type {Word[]} */ const words = [];
  let at = 0;
  while (at < source.length) {
    const rest = source.slice(at);
    const begin = at;
    const add = (/** @type {Word["kind"]} */ kind, /** @type {any} */ value, /** @type {number} */ length) => (words.push({ kind, value, at: begin }), (at += length));
    const name = NAME.exec(rest);
    if (/^\s/.test(rest)) at++;
    else if (name) add("name", name[0], name[0].length);
    else if (/^\d/.test(rest)) {
      const digits = /** @type {RegExpExecArray} */ (NUMBER.exec(rest))[0];
      const text = digits.replaceAll("_", "");
      const isWhole = /^(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0|[1-9]\d*)$/.test(text);
      if (!isWhole && !/^\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw wrong(source, at, "this is not a number");
      if (!isWhole && /^0\d/.test(text) && !/[.eE]/.test(text)) throw wrong(source, at, "a decimal number does not begin with 0");
      const value = isWhole ? BigInt(text) : Number(text);
      if (typeof value === "bigint" && value >= 2n ** 64n) throw wrong(source, at, "this number is too large");
      add("number", value, digits.length);
    } else if (rest[0] === "`") {
      const end = rest.indexOf("`", 1);
      if (end < 0) throw wrong(source, at, "this name has no end");
      add("quoted", rest.slice(1, end), end + 1);
    } else if (rest[0] === '"' || rest[0] === "'") {
      let text = "";
      let next = 1;
      for (; next < rest.length && rest[next] !== rest[0]; next++) {
        if (rest[next] !== "\\") {
          text += rest[next];
          continue;
        }
        const escape = /^\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|([ntr0\\"']))/.exec(rest.slice(next));
        if (!escape) throw wrong(source, at + next, "this escape stands for nothing");
        const [all, hex, point, plain] = escape;
        const code = parseInt(hex ?? point ?? "0", 16);
        if (code > 0x10ffff) throw wrong(source, at + next, "this escape stands for nothing");
        // A byte that is not UTF-8 is a lone surrogate, as in the JSON.
        text += plain !== undefined ? ESCAPES[plain] : hex && code > 127 ? String.fromCharCode(0xdc00 + code) : String.fromCodePoint(code);
        next += all.length - 1;
      }
      if (next >= rest.length) throw wrong(source, at, "this text has no end");
      add("text", text, next + 1);
    } else {
      const sign = SIGNS.find((sign) => rest.startsWith(sign));
      if (!sign) throw wrong(source, at, `\`${[...rest][0]}\` has no meaning here`);
      add("sign", sign, sign.length);
    }
  }
  words.push({ kind: "end", value: "", at: source.length });
  return words;
}

/** The number that a value is; `null` if it is none. @param {any} value @returns {number|bigint|null} */
function numberIn(value) {
  if (typeof value === "number" || typeof value === "bigint") return value;
  if (value && typeof value === "object" && ("labels" in value || "flags" in value)) return value.value;
  return null;
}

/** Labels of an enumeration, or flags of a bit map. @param {any} value @returns {string[]|null} */
const labelsOf = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value.labels ?? value.flags ?? null : null);

/** The order of two texts by their characters, as UTF-8 has it. @param {string} a @param {string} b */
function orderOfTexts(a, b) {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const order = /** @type {number} */ (left[at].codePointAt(0)) - /** @type {number} */ (right[at].codePointAt(0));
    if (order) return order;
  }
  return left.length - right.length;
}

/** How two values compare: negative, 0, positive; `NaN` if they have no order, `null` if they are not of one kind. @param {any} a @param {any} b */
function compareValues(a, b) {
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (typeof a === "string" && typeof b === "string") return orderOfTexts(a, b);
  const [left, right] = [numberIn(a), numberIn(b)];
  if (left === null || right === null) return null;
  return left < right ? -1 : left > right ? 1 : left == right ? 0 : NaN;
}

/** @type {Record<string, (order: number) => boolean>} */
const COMPARISONS = {
  "==": (order) => order === 0, "=": (order) => order === 0, "!=": (order) => order !== 0, "<": (order) => order < 0, "<=": (order) => order <= 0,
  ">": (order) => order > 0, ">=": (order) => order >= 0,
};
/** @type {Record<string, string>} */
const MIRRORED = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

/** @type {Record<string, (value: any) => any>} */
const FUNCTIONS = {
  len: (value) => (typeof value === "string" ? new TextEncoder().encode(value.replace(/[\udc80-\udcff]/g, "x")).length : Array.isArray(value) ? value.length : undefined),
  lower: (value) => (typeof value === "string" ? value.toLowerCase() : undefined),
  hex(value) {
    if (typeof value === "string") return [...new TextEncoder().encode(value)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const number = numberIn(value);
    if (number === null || (typeof number === "number" && !Number.isInteger(number))) return undefined;
    return `${number < 0 ? "-" : ""}0x${(number < 0 ? -number : number).toString(16)}`;
  },
};

/**
 * A field by its parts: the first place that has it counts. What a variant or an optional holds is in its place in the JSON.
 * @param {(string|number)[]} steps @returns {Operand}
 */
function finderOf(steps) {
  const property = PROPERTIES[steps.join(".")];
  const known = (/** @type {string[]} */ keys) => (/** @type {any} */ event) => keys.map((key) => event[key]).find((value) => value !== undefined && value !== null);
  if (property && steps.length === 2) return known(property);
  const within = (/** @type {any} */ root, /** @type {(string|number)[]} */ path) => {
    let value = root;
    for (const step of path) {
      const isThere = typeof step === "number" ? Array.isArray(value) : value && typeof value === "object" && !Array.isArray(value) && Object.hasOwn(value, step);
      if (!isThere) return undefined;
      value = value[step];
    }
    return value ?? undefined;
  };
  const places = SCOPE_NAMES.filter(([words]) => words.length < steps.length && words.every((word, at) => steps[at] === word)).map(([words, scope]) => /** @type {const} */ ([scope, steps.slice(words.length)]));
  for (const scope of SEARCHED) places.push([scope, steps]);
  const keys = Object.values(PROPERTIES).find((keys) => keys[0] === steps[0]);
  const byKey = keys && known(keys);
  return (event) => {
    for (const [scope, path] of places) {
      const value = within(event[scope], path);
      if (value !== undefined) return value;
    }
    // Fields of event logs and of collectd, and keys that stand for what is known of all events.
    return within(event, steps) ?? (steps.length === 1 ? byKey?.(event) : undefined);
  };
}

/** Reads a condition. @param {string} source */
export function readCondition(source) {
  const words = wordsOf(source);
  /** @type {{name: string, at: number, find: Operand}[]} */ const fields = [];
  let at = 0;
  let depth = 0;
  const peek = () => words[at];
  const isSign = (/** @type {string} */ sign) => peek().kind === "sign" && peek().value === sign;
  const isName = (/** @type {string} */ name) => peek().kind === "name" && peek().value === name;
  const take = (/** @type {boolean} */ isIt) => (isIt ? (at++, true) : false);
  const takeSign = (/** @type {string} */ sign) => take(isSign(sign));
  const takeName = (/** @type {string} */ name) => take(isName(name));
  const expected = (/** @type {string} */ what) => {
    const { kind, value } = peek();
    const found = kind === "end" ? "the end" : kind === "number" ? "a number" : kind === "text" ? "a text" : `\`${value}\``;
    return wrong(source, peek().at, `expected ${what}, found ${found}`);
  };
  const close = (/** @type {string} */ sign) => {
    if (!takeSign(sign)) throw expected(`\`${sign}\``);
  };

  /** @returns {Condition} */
  const or = () => {
    const parts = [and()];
    while (takeSign("||") || takeName("or")) parts.push(and());
    return parts.length === 1 ? parts[0] : (event) => parts.some((part) => part(event));
  };
  /** @returns {Condition} */
  const and = () => {
    const parts = [unary()];
    while (takeSign("&&") || takeName("and")) parts.push(unary());
    return parts.length === 1 ? parts[0] : (event) => parts.every((part) => part(event));
  };
  /** @returns {Condition} */
  const unary = () => {
    if (depth === DEEPEST) throw wrong(source, peek().at, `more than ${DEEPEST} levels of parentheses and \`not\``);
    depth++;
    let condition;
    if (takeSign("!") || takeName("not")) {
      const inner = unary();
      condition = (/** @type {any} */ event) => !inner(event);
    } else if (takeSign("(")) {
      condition = or();
      close(")");
    } else condition = test();
    depth--;
    return condition;
  };

  const literal = (/** @type {string} */ what) => {
    const isNegative = takeSign("-");
    const { kind, value } = peek();
    if (kind === "number") {
      at++;
      const number = isNegative ? -value : value;
      if (typeof number === "bigint" && number < -(2n ** 63n)) throw wrong(source, words[at - 1].at, "this number is too small");
      return number;
    }
    if (isNegative) throw expected("a number");
    if (kind === "text") return at++, value;
    if (takeName("true")) return true;
    if (takeName("false")) return false;
    throw expected(what);
  };
  const field = () => {
    const begin = peek().at;
    /** @type {(string|number)[]} */ const steps = [];
    do {
      if (peek().kind !== "name" && peek().kind !== "quoted") throw expected("a name");
      steps.push(words[at++].value);
      while (takeSign("[")) {
        if (typeof peek().value !== "bigint") throw expected("the position of an element");
        steps.push(Number(words[at++].value));
        close("]");
      }
    } while (takeSign("."));
    const name = steps.join(".");
    if (ABSENT.includes(name)) throw wrong(source, begin, `a page of its own does not hold \`${name}\`: run \`kymo view\``);
    const find = finderOf(steps);
    fields.push({ name, at: begin, find });
    return find;
  };
  /** @returns {{find: Operand, isLiteral: boolean, isCall: boolean}} */
  const operand = () => {
    const { kind, value } = peek();
    if (kind === "name" && !["true", "false"].includes(value)) {
      if (["and", "or", "not", "in", "contains"].includes(value)) throw expected("a field or a value");
      const isCall = Object.hasOwn(FUNCTIONS, value) && words[at + 1].value === "(" && words[at + 1].kind === "sign";
      if (!isCall) return { find: field(), isLiteral: false, isCall };
      at += 2;
      const find = field();
      close(")");
      return { find: (event) => FUNCTIONS[value](find(event)), isLiteral: false, isCall };
    }
    if (kind === "quoted") return { find: field(), isLiteral: false, isCall: false };
    const known = literal("a field or a value");
    return { find: () => known, isLiteral: true, isCall: false };
  };
  const text = () => {
    if (peek().kind !== "text") throw expected("a text in quotes");
    return /** @type {string} */ (words[at++].value);
  };

  /** Whether a text, or one of the labels of a value, is as wanted. @param {(text: string) => boolean} holds @returns {(value: any) => boolean} */
  const anyText = (holds) => (value) => (typeof value === "string" ? holds(value) : labelsOf(value)?.some(holds) ?? false);
  const regex = () => {
    const begin = peek().at;
    const pattern = text();
    const flags = /^\(\?([ims]+)\)/.exec(pattern);
    try {
      const found = new RegExp(pattern.slice(flags?.[0].length ?? 0), `u${flags?.[1] ?? ""}`);
      return (/** @type {string} */ text) => found.test(text);
    } catch {
      throw wrong(source, begin, "this is not a regular expression that this page reads");
    }
  };
  const members = () => {
    const end = takeSign("(") ? ")" : "]";
    if (end === "]" && !takeSign("[")) throw expected("`[`");
    /** @type {((value: any) => boolean)[]} */ const list = [];
    while (!takeSign(end)) {
      const begin = peek().at;
      const low = literal("a value");
      if (takeSign("..") || takeSign("...")) {
        const high = literal("a value");
        const order = compareValues(low, high);
        if (order === null) throw wrong(source, begin, "a range needs two values of one kind");
        if (order > 0) throw wrong(source, begin, "this range holds nothing");
        list.push((value) => (compareValues(value, low) ?? -1) >= 0 && (compareValues(value, high) ?? 1) <= 0);
      } else list.push((value) => isEqual(value, low));
      if (!takeSign(",")) {
        close(end);
        break;
      }
    }
    return (/** @type {any} */ value) => list.some((holds) => holds(value));
  };
  /** Whether a value is one that was written: enumerations also by their labels. @param {any} value @param {any} known */
  const isEqual = (value, known) => (typeof known === "string" && labelsOf(value) ? /** @type {string[]} */ (labelsOf(value)).includes(known) : compareValues(value, known) === 0);

  /** @returns {Condition} */
  const test = () => {
    const subject = operand();
    const isNot = isName("not") && words[at + 1].kind === "name" && ["in", "contains"].includes(words[at + 1].value);
    if (isNot) at++;
    const ask = (/** @type {(value: any) => boolean} */ holds, isNegated = isNot) => (/** @type {any} */ event) => {
      const value = subject.find(event);
      return (value !== undefined && holds(value)) !== isNegated;
    };
    if (takeName("in")) return ask(members());
    if (takeName("contains")) {
      const part = text();
      return ask(anyText((text) => text.includes(part)));
    }
    if (takeSign("=~")) return ask(anyText(regex()));
    if (isSign("~") || isSign("!~")) {
      const isNegated = words[at++].value === "!~";
      const pattern = patternOf(text());
      return ask(anyText((text) => pattern.test(text)), isNegated);
    }
    const sign = peek().kind === "sign" && Object.hasOwn(COMPARISONS, peek().value) ? peek().value : null;
    if (sign === null) {
      if (subject.isLiteral) {
        const known = subject.find(null);
        if (typeof known !== "boolean") throw expected("a comparison");
        return () => known;
      }
      return ask((value) => (typeof value === "boolean" ? value : (numberIn(value) ?? 0) != 0));
    }
    at++;
    const other = operand();
    if (subject.isCall && other.isCall) throw expected("a field or a value without a function");
    const holds = COMPARISONS[sign];
    return (event) => {
      const [left, right] = [subject.find(event), other.find(event)];
      if (left === undefined || right === undefined) return false;
      for (const [one, two, by] of /** @type {const} */ ([[left, right, sign], [right, left, MIRRORED[sign] ?? sign]])) {
        // A text that was written beside an enumeration is a label of it.
        if (typeof two === "string" && labelsOf(one)) {
          const isIt = /** @type {string[]} */ (labelsOf(one)).includes(two);
          return by === "==" || by === "=" ? isIt : by === "!=" && !isIt;
        }
      }
      const order = compareValues(left, right);
      return order !== null && holds(order);
    };
  };

  const condition = or();
  if (peek().kind !== "end") throw expected("`and`, `or` or the end");
  return {
    holds: condition,
    /** Throws if none of some events has a field that is asked for. @param {any[]} events */
    check(events) {
      const unknown = fields.find(({ find }) => !events.some((event) => find(event) !== undefined));
      if (unknown) throw wrong(source, unknown.at, `no event of this page has a field \`${unknown.name}\``);
    },
  };
}
