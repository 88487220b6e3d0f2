// What goes on, as it happens: the event stream, or polling where there is none; nothing at all while nobody looks.

import {ApiError, EVENTS, ask, calls} from './api.js';

const INFO_LIVE = 5000;
const INFO_POLLING = 2000;
const INFO_PATIENCE = 4000;
const STREAM_SILENCE = 5000;  // it speaks each second
const STREAM_AGAIN = 15_000;
const REST_MAX = 20_000;

// A browser makes six connections to a server, and a stream is one for good: if every page had one, the seventh would
// not even load. A place of these four, as a function that gives it back; null if all are taken. Where the browser
// cannot count its pages (plain HTTP from another machine) each has one.
const STREAMS_OF_A_BROWSER = 4;

async function takePlace() {
  for (let place = 0; navigator.locks && place < STREAMS_OF_A_BROWSER; ++place) {
    const leave = await new Promise(resolve => {
      navigator.locks.request(`stream ${place}`, {ifAvailable: true},
        mine => mine ? new Promise(done => resolve(done)) : resolve(null));
    });
    if (leave) {
      return leave;
    }
  }
  return navigator.locks ? null : () => {};
}

// Calls a task again and again, while the page is seen: `interval` after it ended, or ten times as long as it took (but
// 20 s at most), so that a large server has its rest. soon() is for news.
export class Repeater {
  static #all = new Set();
  static #paused = false;
  #task;
  #interval;
  #timer = 0;
  #stop = null;
  #again = false;

  // The task gets an AbortSignal.
  constructor(task, interval) {
    this.#task = task;
    this.#interval = interval;
  }

  start() {
    Repeater.#all.add(this);
    this.#run();
    return this;
  }

  stop() {
    Repeater.#all.delete(this);
    this.#halt();
  }

  // Without waiting for the interval; if it is at it, once more afterwards.
  soon() {
    if (this.#stop) {
      this.#again = true;
    } else if (Repeater.#all.has(this)) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#run(), 150);
    }
  }

  setInterval(interval) {
    this.#interval = interval;
  }

  static soonAll() {
    Repeater.#all.forEach(each => each.soon());
  }

  static pauseAll() {
    Repeater.#paused = true;
    Repeater.#all.forEach(each => each.#halt());
  }

  static resumeAll() {
    Repeater.#paused = false;
    Repeater.#all.forEach(each => each.#run());
  }

  #halt() {
    clearTimeout(this.#timer);
    this.#stop?.abort();
    this.#stop = null;
    this.#again = false;
  }

  async #run() {
    if (Repeater.#paused || this.#stop) {
      return;
    }
    clearTimeout(this.#timer);
    const mine = new AbortController();
    this.#stop = mine;
    const begun = performance.now();
    try {
      await this.#task(mine.signal);
    } catch (failure) {
      if (!mine.signal.aborted) {
        console.error(failure);
      }
    }
    if (this.#stop !== mine) {
      return;  // it was halted meanwhile
    }
    this.#stop = null;
    const rest = this.#again ? 300 : Math.max(this.#interval, Math.min(REST_MAX, 10 * (performance.now() - begun)));
    this.#again = false;
    this.#timer = setTimeout(() => this.#run(), rest);
  }
}

// Events: 'figures', 'changes', 'info', 'mode', each with its `detail`.
export class Live extends EventTarget {
  #stream = null;
  #attempt = 0;        // at a stream
  #leave = () => {};
  #watch = 0;
  #again = 0;
  #changes = [];
  #info = new Repeater(signal => this.#learn(signal), INFO_LIVE);
  #last = null;      // the totals of the last /api/info, for rates
  #answered = null;  // when there was an answer last
  #mode = 'starting';

  // 'starting', 'live', 'polling', 'lost' (no answer) or 'paused'.
  get mode() {
    return this.#mode;
  }

  get answeredAt() {
    return this.#answered;
  }

  begin() {
    document.addEventListener('visibilitychange', () => this.#look());
    // A page that the browser keeps for "back" must not keep a stream.
    addEventListener('pagehide', () => this.#pause());
    addEventListener('pageshow', event => event.persisted && this.#look());
    this.#info.start();
    this.#look();
  }

  #look() {
    if (document.visibilityState === 'hidden') {
      this.#pause();
    } else {
      Repeater.resumeAll();
      this.#open();
    }
  }

  #pause() {
    this.#close();
    clearTimeout(this.#again);
    Repeater.pauseAll();
    this.#last = null;
    this.#enter('paused');
  }

  #enter(mode) {
    if (mode !== this.#mode) {
      this.#mode = mode;
      this.#tell('mode', mode);
    }
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, {detail}));
  }

  // --- the stream

  async #open() {
    this.#close();
    clearTimeout(this.#again);
    const attempt = this.#attempt;
    const leave = await takePlace();
    if (attempt !== this.#attempt) {
      leave?.();
      return;
    }
    if (!leave) {
      this.#lose();
      return;
    }
    this.#leave = leave;
    const stream = new EventSource(EVENTS);
    this.#stream = stream;
    this.#hear();
    stream.addEventListener('activity', event => {
      this.#hear();
      this.#answered = Date.now();
      this.#info.setInterval(INFO_LIVE);
      this.#enter('live');
      this.#flush();
      this.#tell('figures', JSON.parse(event.data));
    });
    stream.addEventListener('change', event => this.#changes.push(JSON.parse(event.data)));
    // The browser would ask again at once, and so push out somebody else's where there are too many.
    stream.addEventListener('error', () => this.#lose());
  }

  #close() {
    this.#stream?.close();
    this.#stream = null;
    ++this.#attempt;
    this.#leave();
    this.#leave = () => {};
    clearTimeout(this.#watch);
  }

  #hear() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#lose(), STREAM_SILENCE);
  }

  #lose() {
    this.#close();
    if (this.#mode !== 'lost') {
      this.#enter('polling');
    }
    this.#info.setInterval(INFO_POLLING);
    this.#info.soon();
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.#open(), STREAM_AGAIN);
  }

  // The changes of a second come together, before its activity.
  #flush() {
    if (this.#changes.length > 0) {
      if (this.#changes.some(each => each.reason && each.reason !== 'graceful')) {
        this.#info.soon();  // it may be what is wrong
      }
      this.#tell('changes', this.#changes);
      this.#changes = [];
    }
  }

  // --- polling

  async #learn(signal) {
    try {
      const info = await ask(calls.info(), signal, INFO_PATIENCE);
      this.#answered = Date.now();
      if (this.#mode === 'lost') {
        this.#enter('polling');
        this.#open();
        Repeater.soonAll();  // what they show is of before
      }
      if (this.#mode !== 'live') {
        this.#figure(info);
      }
      this.#tell('info', info);
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      this.#last = null;
      this.#info.setInterval(INFO_POLLING);
      this.#enter('lost');
    }
  }

  // What the stream would have said.
  #figure(info) {
    const {totals, uptime_ms: at} = info;
    const before = this.#last;
    this.#last = {at, totals};
    if (before && at > before.at) {
      const perSecond = key => (totals[key] - before.totals[key]) * 1000 / (at - before.at);
      this.#tell('figures', {
        locks: info.locks, sessions: info.sessions, waiters: info.waiters, grants_per_s: perSecond('grants'),
        handovers_per_s: perSecond('handovers'), heartbeats_per_s: perSecond('heartbeats'),
      });
    }
  }
}
