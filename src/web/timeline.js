// The ownership of one lock over time, as an accessible SVG. No imports, no dependencies, no inline style: works
// under a strict Content-Security-Policy, served as a file or put into a <script type="module"> of a page. With
// timeline.css.
//
// What it draws is a *timeline*, all times in milliseconds since 1970:
//
//   {
//     from, to,            // what the axis shows; `to` is now, or the end of the records
//     knownFrom,           // optional: before it nothing is known, and that is drawn as such
//     intervals: [{        // one for each ownership
//       owner,             // text: intervals with the same owner share a lane
//       from,              // the grant; NaN: not known (before `from`)
//       to,                // its end; null: not ended
//       end,               // 'graceful', 'expired', 'io_timeout', 'force'; null: not ended
//       waited,            // optional: milliseconds in the queue before the grant
//       token,             // optional
//     }],
//   }
//
// `intervalsOf(records)` makes the intervals of what the API calls changes (/api/lock/history) and of records of
// one lock of the audit log: both have event, time, identity, remote_addr, token, reason, wait_ms and held_ms.
//
//   const view = new TimelineView(element);   // draws into it, and again when its width changes
//   view.update(timeline);
//   view.destroy();

const SVG = 'http://www.w3.org/2000/svg';

// Lanes of their own for so many owners, those who had the lock last; the others share one.
const LANES_MAX = 8;
const OTHERS = 'others';

const LANE = 30;
const BAR = 14;
const LABEL = 15;
const AXIS = 22;
const BAR_MIN = 2;
// Closer together than this no two marks can be told apart: the worse end is shown.
const MARK_ROOM = 7;

export const ENDS = {
  graceful: {word: 'released', short: 'released', rank: 1},
  force: {word: 'ended by an operator', short: 'forced out', rank: 2},
  io_timeout: {word: 'did not read its replies', short: 'did not read', rank: 3},
  expired: {word: 'fell silent', short: 'fell silent', rank: 4},
};

// --- times as text

const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]];

// Two units at the most: "3 min 12 s", "1.4 s", "18 ms".
export function duration(ms) {
  if (!Number.isFinite(ms)) {
    return 'unknown';
  }
  if (ms < 1000) {
    return `${Math.max(0, Math.round(ms))} ms`;
  }
  if (ms < 10_000) {
    return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  }
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[first];
  const whole = `${Math.floor(ms / size)} ${unit}`;
  const rest = UNITS[first + 1];
  const more = rest ? Math.floor(ms % size / rest[1]) : 0;
  return more > 0 ? `${whole} ${more} ${rest[0]}` : whole;
}

const two = number => String(number).padStart(2, '0');

// In UTC, as the logs have it: "14:03:07", with the day if it is not that of `near`.
export function clock(ms, near = ms) {
  if (!Number.isFinite(ms)) {
    return 'unknown';
  }
  const at = new Date(ms);
  const day = at.toISOString().slice(0, 10);
  const time = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  return day === new Date(near).toISOString().slice(0, 10) ? time : `${day} ${time}`;
}

// --- from records to intervals

// In the order of their beginnings. A record whose other half is not there gives what it tells.
export function intervalsOf(records) {
  const made = [];
  const open = new Map();
  for (const record of records) {
    const at = Date.parse(record.time);
    if (record.event === 'granted') {
      const interval = {
        owner: ownerOf(record), from: at, to: null, end: null, waited: record.wait_ms, token: record.token,
      };
      open.set(record.token, interval);
      made.push(interval);
    } else if (record.event === 'released') {
      let interval = open.get(record.token);
      if (!interval) {
        interval = {owner: ownerOf(record), from: at - record.held_ms, token: record.token};
        made.push(interval);
      }
      open.delete(record.token);
      interval.to = at;
      interval.end = record.reason;
    }
  }
  return made.sort((left, right) => left.from - right.from);
}

// Its identity; without mutual TLS where it came from, without the port, which each connection has anew.
export function ownerOf(record) {
  return record.identity || record.remote_addr.replace(/:\d+$/, '').replace(/^unix:pid=\d+,/, 'unix:');
}

// --- layout: numbers only

// Where everything is in a drawing so many pixels wide.
export function layoutTimeline(timeline, width) {
  const {from, to} = timeline;
  const span = Math.max(1, to - from);
  const x = ms => Math.max(0, Math.min(width, (ms - from) / span * width));
  const shown = timeline.intervals
    .map(each => ({...each, from: Number.isFinite(each.from) ? each.from : from}))
    .filter(each => each.from <= to && (each.to ?? to) >= from);
  const lanes = lanesOf(shown);
  const row = new Map(lanes.map((name, index) => [name, index + 1]));
  const bars = shown.map(each => {
    const left = x(each.from);
    const lane = row.get(each.owner) ?? row.get(OTHERS);
    return {
      interval: each,
      lane,
      x: Math.min(left, width - BAR_MIN),
      width: Math.max(BAR_MIN, x(each.to ?? to) - left),
      waitX: each.waited > 0 ? x(each.from - each.waited) : left,
      cutLeft: each.from < from,
      open: each.to === null || each.to > to,
      mark: each.to !== null && each.to <= to && each.end !== 'graceful' ? each.end : null,
    };
  });
  thinOut(bars);
  return {
    width,
    height: LANE * (lanes.length + 1) + AXIS,
    lanes,
    bars,
    gaps: gapsOf(shown, timeline).map(gap => ({...gap, x: x(gap.from), width: x(gap.to) - x(gap.from)})),
    unknown: timeline.knownFrom > from ? {x: 0, width: x(timeline.knownFrom)} : null,
    ticks: ticksOf(from, to, width).map(each => ({...each, x: x(each.at)})),
  };
}

function lanesOf(intervals) {
  const last = new Map();
  for (const each of intervals) {
    last.set(each.owner, Math.max(last.get(each.owner) ?? -Infinity, each.from));
  }
  const owners = [...last].sort((left, right) => right[1] - left[1]).map(([owner]) => owner);
  return owners.length <= LANES_MAX ? owners : [...owners.slice(0, LANES_MAX - 1), OTHERS];
}

// Of marks in one lane that would cover each other only the worst stays.
function thinOut(bars) {
  const before = new Map();
  for (const bar of bars.filter(each => each.mark).sort((left, right) => left.x + left.width - right.x - right.width)) {
    const other = before.get(bar.lane);
    if (other && bar.x + bar.width - other.x - other.width < MARK_ROOM) {
      const worse = ENDS[bar.mark]?.rank > ENDS[other.mark]?.rank;
      (worse ? other : bar).mark = null;
      if (!worse) {
        continue;
      }
    }
    before.set(bar.lane, bar);
  }
}

// When nobody owned the lock, as far as is known.
function gapsOf(intervals, timeline) {
  const gaps = [];
  let free = Math.max(timeline.from, timeline.knownFrom ?? timeline.from);
  for (const each of [...intervals].sort((left, right) => left.from - right.from)) {
    if (each.from > free) {
      gaps.push({from: free, to: each.from});
    }
    free = Math.max(free, each.to ?? Infinity);
  }
  if (free < timeline.to) {
    gaps.push({from: free, to: timeline.to});
  }
  return gaps;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
  172_800, 604_800, 2_592_000].map(seconds => seconds * 1000);

function ticksOf(from, to, width) {
  const most = Math.max(2, Math.floor(width / 90));
  let step = STEPS.find(each => (to - from) / each <= most) ?? STEPS.at(-1);
  while ((to - from) / step > most) {
    step *= 2;
  }
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const iso = new Date(at).toISOString();
    const text = step >= 86_400_000 ? iso.slice(5, 10) : step >= 60_000 ? iso.slice(11, 16) : iso.slice(11, 19);
    ticks.push({at, text});
  }
  return ticks;
}

// --- words, for whoever does not see it, and for the line below it

export function describeInterval(interval, near) {
  const words = [interval.owner, `from ${clock(interval.from, near)}`];
  if (interval.to === null) {
    words.push('still owns it');
  } else {
    words.push(`for ${duration(interval.to - interval.from)}`);
    words.push(ENDS[interval.end]?.word ?? interval.end);
  }
  if (interval.waited > 0) {
    words.push(`waited ${duration(interval.waited)}`);
  }
  if (interval.token !== undefined) {
    words.push(`token ${interval.token}`);
  }
  return words.join(', ');
}

export function describeTimeline(timeline) {
  const count = timeline.intervals.length;
  const owners = new Set(timeline.intervals.map(each => each.owner)).size;
  const ended = reason => timeline.intervals.filter(each => each.end === reason).length;
  const words = [
    `${count} ${count === 1 ? 'ownership' : 'ownerships'} by ${owners} ${owners === 1 ? 'owner' : 'owners'}`,
    `in ${duration(timeline.to - timeline.from)} up to ${clock(timeline.to, 0)} UTC`,
  ];
  for (const [reason, {word}] of Object.entries(ENDS)) {
    if (reason !== 'graceful' && ended(reason) > 0) {
      words.push(`${ended(reason)} ${word}`);
    }
  }
  return words.join(', ');
}

// --- drawing

function element(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const rounded = number => Math.round(number * 10) / 10;

// A shape for each end that is no release, around the point where the bar ends: nobody has to tell colours apart.
const MARKS = {
  expired: (x, y) => `M${x} ${y - 8}l8 8l-8 8l-8 -8z`,
  force: (x, y) => `M${x - 6} ${y - 7}h12v14h-12z`,
  io_timeout: (x, y) => `M${x} ${y - 8}l8 14h-16z`,
};

export function markPath(end, x, y) {
  return (MARKS[end] ?? MARKS.io_timeout)(rounded(x), rounded(y));
}

function drawBar(bar, layout) {
  const top = LANE * bar.lane + LABEL;
  const middle = top + BAR / 2;
  const end = bar.x + bar.width;
  const group = element('g', {
    class: bar.open ? 'bar open' : 'bar', role: 'img', tabindex: '-1',
    'aria-label': describeInterval(bar.interval),
  });
  if (bar.x - bar.waitX >= 1) {
    group.append(element('path', {class: 'wait', d: `M${rounded(bar.waitX)} ${middle}H${rounded(bar.x)}`}));
  }
  group.append(element('rect', {class: 'hold', x: rounded(bar.x), y: top, width: rounded(bar.width), height: BAR}));
  if (bar.open) {  // goes on: an arrow's head
    const tip = Math.min(end, layout.width - 1);
    group.append(element('path', {class: 'on', d: `M${rounded(tip - 5)} ${top + 2}l5 5l-5 5`}));
  }
  return group;
}

// Above all bars: the next one begins where a mark stands.
function drawMark(bar, layout) {
  const at = Math.max(9, Math.min(layout.width - 9, bar.x + bar.width));
  return element('path', {
    class: `mark mark-${bar.mark}`, d: markPath(bar.mark, at, LANE * bar.lane + LABEL + BAR / 2), 'aria-hidden': 'true',
  });
}

function drawLock(layout) {
  const group = element('g', {class: 'lock', 'aria-hidden': 'true'});
  const box = (name, each) => element('rect', {
    class: name, x: rounded(each.x), y: LABEL, width: rounded(Math.max(1, each.width)), height: BAR,
  });
  group.append(element('text', {class: 'name', x: 0, y: 11}, 'the lock'));
  group.append(...layout.bars.map(bar => box('held', bar)));
  group.append(...layout.gaps.map(gap => box('gap', gap)));
  if (layout.unknown) {
    group.append(box('unknown', layout.unknown));
  }
  return group;
}

// Text of strangers goes in as text, never as markup.
function draw(layout, timeline) {
  const svg = element('svg', {
    viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height, role: 'group',
    'aria-label': describeTimeline(timeline),
  });
  for (const tick of layout.ticks) {
    const anchor = tick.x < 30 ? 'start' : tick.x > layout.width - 30 ? 'end' : 'middle';
    svg.append(
      element('path', {class: 'tick', d: `M${rounded(tick.x)} ${LABEL}V${layout.height - AXIS + 4}`}),
      element('text', {
        class: 'time', x: rounded(tick.x), y: layout.height - 6, 'text-anchor': anchor, 'aria-hidden': 'true',
      }, tick.text),
    );
  }
  svg.append(drawLock(layout));
  layout.lanes.forEach((name, index) => {
    const line = LANE * (index + 1);
    svg.append(
      element('text', {class: 'name', x: 0, y: line + 11, 'aria-hidden': 'true'}, name),
      element('path', {class: 'lane', d: `M0 ${line + LABEL + BAR / 2}H${layout.width}`}),
    );
  });
  svg.append(
    ...layout.bars.map(bar => drawBar(bar, layout)),
    ...layout.bars.filter(bar => bar.mark).map(bar => drawMark(bar, layout)),
  );
  return svg;
}

// What the colours and shapes mean; only of what is there.
function drawKey(timeline) {
  const list = document.createElement('ul');
  list.className = 'timeline-key';
  const add = (text, ...shapes) => {
    const item = document.createElement('li');
    const picture = element('svg', {width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true'}, ...shapes);
    item.append(picture, text);
    list.append(item);
  };
  const box = name => element('rect', {class: name, x: 1, y: 4, width: 16, height: 10});
  add('owned', box('hold'));
  if (timeline.intervals.some(each => each.to === null)) {
    add('still owned', box('hold open'), element('path', {class: 'on', d: 'M9 5l4 4l-4 4'}));
  }
  if (timeline.intervals.some(each => each.waited > 0)) {
    add('waited', element('path', {class: 'wait', d: 'M1 9H17'}));
  }
  add('free', box('gap'));
  if (timeline.knownFrom > timeline.from) {
    add('not remembered', box('unknown'));
  }
  for (const [reason, {word}] of Object.entries(ENDS)) {
    if (reason !== 'graceful' && timeline.intervals.some(each => each.end === reason)) {
      add(word, element('path', {class: `mark mark-${reason}`, d: markPath(reason, 9, 9)}));
    }
  }
  return list;
}

export class TimelineView {
  #box;
  #picture;
  #key;
  #line;
  #watch;
  #timeline = null;
  #width = 0;
  #chosen = null;  // the interval whose words stand below, by its token and beginning

  constructor(box) {
    this.#box = box;
    box.classList.add('timeline');
    this.#picture = box.appendChild(document.createElement('div'));
    this.#line = box.appendChild(document.createElement('p'));
    this.#line.className = 'timeline-line';
    this.#key = box.appendChild(document.createElement('div'));
    this.#watch = new ResizeObserver(() => {
      if (this.#timeline && this.#picture.clientWidth !== this.#width) {
        this.update(this.#timeline);
      }
    });
    this.#watch.observe(this.#picture);
  }

  update(timeline) {
    this.#timeline = timeline;
    this.#width = this.#picture.clientWidth;
    const hadFocus = this.#picture.contains(document.activeElement);
    const layout = layoutTimeline(timeline, Math.max(200, this.#width));
    const svg = draw(layout, timeline);
    this.#picture.replaceChildren(svg);
    this.#key.replaceChildren(drawKey(timeline));
    this.#listen(svg, layout.bars.map(bar => bar.interval), hadFocus);
  }

  destroy() {
    this.#watch.disconnect();
    this.#box.replaceChildren();
    this.#box.classList.remove('timeline');
  }

  // One stop of the tabulator; the arrow keys, Home and End go from one ownership to the next.
  #listen(svg, shown, hadFocus) {
    const bars = [...svg.querySelectorAll('.bar')];
    const idOf = each => `${each.token} ${each.from}`;
    const choose = index => {
      this.#chosen = idOf(shown[index]);
      this.#line.textContent = describeInterval(shown[index], this.#timeline.to);
      bars.forEach((bar, at) => bar.setAttribute('tabindex', at === index ? '0' : '-1'));
    };
    if (bars.length === 0) {
      this.#line.textContent = describeTimeline(this.#timeline);
      return;
    }
    const kept = shown.findIndex(each => idOf(each) === this.#chosen);
    if (kept >= 0) {
      choose(kept);
    } else {
      this.#line.textContent = describeTimeline(this.#timeline);
      bars.at(-1).setAttribute('tabindex', '0');
    }
    if (hadFocus) {
      bars.at(kept).focus({preventScroll: true});
    }
    bars.forEach((bar, index) => {
      bar.addEventListener('focus', () => choose(index));
      bar.addEventListener('pointerenter', () => choose(index));
    });
    svg.addEventListener('keydown', event => {
      const at = bars.indexOf(document.activeElement);
      const next = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1}[event.key];
      if (at >= 0 && bars[next]) {
        event.preventDefault();
        bars[next].focus();
      }
    });
  }
}
