// What the server tells of recordings and their tracks (`src/contents.rs`): all of it at first, then what has changed.

/** @import { Track } from "./state.js" */
/**
 * @typedef {{path: string, what: string, format: string, streams: number, classes: (string|null)[], fields: string[], notes: string[],
 *   faults: string[], fault_count: number}} RecordingInfo
 */

const NONE = -(2n ** 63n);

/** What is known of all rows of a track. @param {any[]} sent */
const stateOf = ([rows, first, last, values, depths, estimate]) => ({ rows, first: BigInt(first), last: BigInt(last), values, depths, estimate });

export class Contents {
  generation = 0;
  epoch = -1;
  /** @type {RecordingInfo[]} */ recordings = [];
  /** @type {Track[]} tracks by their numbers */ byId = [];
  /** @type {Track[]} in the order in which they are shown */ tracks = [];
  /** @type {any[]} */ notices = [];
  faults = 0;

  /** What a request says about what is known already. */
  known() {
    const { generation, epoch, faults } = this;
    return { generation, epoch, faults, notices: this.notices.length, tracks: this.byId.length };
  }

  /** Takes an answer. Returns whether tracks have come, gone or moved. @param {any} answer */
  take(answer) {
    if (answer.new) Object.assign(this, { recordings: [], byId: [], tracks: [], notices: [], faults: 0 });
    this.generation = answer.generation;
    this.epoch = answer.epoch;
    this.#takeRecordings(answer.recordings);
    const isMore = this.#takeTracks(answer.tracks);
    const { rows } = answer;
    const states = answer.states.map(stateOf);
    for (let at = 0; at < rows.length; at += 2) {
      const track = this.byId[rows[at]];
      const state = states[rows[at + 1]];
      if (!track) continue;
      // Of thousands of tracks: one by one, as fields that are there.
      track.rows = state.rows;
      track.first = state.first;
      track.last = state.last;
      track.values = state.values;
      track.depths = state.depths;
      track.estimate = state.estimate;
    }
    if (answer.order) {
      this.tracks = [];
      for (let at = 0; at < answer.order.length; at += 2) {
        for (let id = answer.order[at]; id < answer.order[at] + answer.order[at + 1]; id++) this.tracks.push(this.byId[id]);
      }
    }
    this.#takeFaults(answer);
    return isMore || Boolean(answer.order) || rows.length > 0 || answer.recordings.list.length > 0;
  }

  /** @param {any} sent */
  #takeRecordings({ count, kinds, directories, list }) {
    for (let at = 0; at < list.length; at += 4) {
      const path = directories[list[at + 2]] + list[at + 3];
      this.recordings[list[at]] = { path, ...kinds[list[at + 1]], faults: [], fault_count: 0 };
    }
    this.recordings.length = count;
  }

  /** @param {any} sent */
  #takeTracks({ sets, list }) {
    for (let at = 0; at < list.length; at += 3) {
      let id = list[at];
      for (const [path, name, kind, unit] of sets[list[at + 2]]) {
        this.byId[id] = { id, recording: list[at + 1], path, name, kind, unit, rows: 0, values: null, depths: 0, estimate: true, first: NONE, last: NONE };
        id++;
      }
    }
    return list.length > 0;
  }

  /** @param {any} answer */
  #takeFaults({ notices_from, notices, faults_from, faults, most_faults }) {
    const more = notices.map((/** @type {any} */ notice) => ({ ...notice, begin: BigInt(notice.begin), end: BigInt(notice.end) }));
    if (notices_from !== this.notices.length || more.length) this.notices = [...this.notices.slice(0, notices_from), ...more];
    if (!faults_from) for (const recording of this.recordings) if (recording.fault_count) Object.assign(recording, { faults: [], fault_count: 0 });
    for (const [recording, text] of faults) {
      const found = this.recordings[recording];
      if (found.fault_count++ < most_faults) found.faults.push(text);
    }
    this.faults = faults_from + faults.length;
  }
}
