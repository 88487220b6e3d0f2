// Draws the page of `monolockctl audit report` from the data in it. Stands behind names.js and timeline.js in one module. Texts
// of strangers go in as text, never as markup.

const data = JSON.parse(document.getElementById('data').textContent);
const REASONS = ['graceful', 'expired', 'io_timeout', 'force'];
const UNRECORDED = -2;
const ROWS = 20;
const CARDS = 10;
const INCIDENTS = 50;

const at = id => document.getElementById(id);

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// No name looks like another, and the empty one like something.
const shown = name => name === '' ? '""' : plainName(name);

const number = new Intl.NumberFormat('en');
const plural = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? '' : 's'}`;
const moment = ms => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
const second = ms => moment(ms).slice(0, 19);

// --- a distribution: two bins for each doubling, so the axis is logarithmic

const lowest = bin => bin < 2 ? bin : 2 ** (bin >> 1) * (1 + (bin & 1) / 2);
function placeOf(ms) {
  if (ms < 2) {
    return ms;
  }
  const doubling = Math.floor(Math.log2(ms));
  return 2 * doubling + 2 * (ms / 2 ** doubling - 1);
}
const SHARES = [['p50', 'half'], ['p90', '9 of 10'], ['p99', '99 of 100'], ['max', 'longest']];
const NICE = [0, 1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000, 2_592_000_000];
const LABELS = 17;

function drawDistribution(times, width, what) {
  const first = times.bins[0][0];
  const last = times.bins.at(-1)[0] + 1;
  const most = Math.max(...times.bins.map(([, count]) => count));
  const top = LABELS * SHARES.length + 6;
  const bottom = top + 110;
  const left = 4;
  const unit = (width - left - 8) / (last - first);
  const x = place => left + (Math.min(last, Math.max(first, place)) - first) * unit;
  const words = `${plural(times.count, what)}: ${SHARES.map(([key, word]) => `${word} ${duration(times[key])}`).join(', ')}`;
  const svg = element('svg', {viewBox: `0 0 ${width} ${bottom + 22}`, width, height: bottom + 22, role: 'img', 'aria-label': words});
  let free = -Infinity;
  for (const ms of NICE.filter(each => placeOf(each) >= first && placeOf(each) <= last)) {
    const place = x(placeOf(ms));
    svg.append(element('path', {class: 'grid', d: `M${rounded(place)} ${top}V${bottom + 4}`}));
    if (place - free > 52) {
      const anchor = place < 24 ? 'start' : place > width - 24 ? 'end' : 'middle';
      svg.append(element('text', {class: 'axis', x: rounded(place), y: bottom + 17, 'text-anchor': anchor}, duration(ms)));
      free = place;
    }
  }
  for (const [bin, count] of times.bins) {
    const height = Math.max(2, count / most * (bottom - top));
    const bar = element('rect', {
      class: 'count', x: rounded(x(bin) + Math.min(1, unit / 8)), y: rounded(bottom - height),
      width: rounded(Math.max(1, unit - Math.min(2, unit / 4))), height: rounded(height),
    });
    bar.append(element('title', {}, `${binText(bin)}: ${number.format(count)}`));
    svg.append(bar);
  }
  svg.append(element('path', {class: 'base', d: `M0 ${bottom}H${width}`}));
  const labels = [];
  SHARES.forEach(([key], index) => {
    const place = x(placeOf(times[key]) + 0.5);
    const line = LABELS * index + 12;
    const right = place < width / 2;
    svg.append(element('path', {class: `mark mark-${key}`, d: `M${rounded(place)} ${line - 10}V${bottom}`}));
    labels.push(element('text', {x: rounded(place + (right ? 5 : -5)), y: line, 'text-anchor': right ? 'start' : 'end'}, `${key} ${duration(times[key])}`));
  });
  svg.append(...labels);  // above all lines
  return svg;
}

function binText(bin) {
  const from = lowest(bin);
  const to = lowest(bin + 1) - 1;
  return from === to ? duration(from) : `${duration(from)} to ${duration(to)}`;
}

function binsTable(times) {
  const rows = times.bins.map(([bin, count]) => html('tr', {}, html('td', {}, binText(bin)), html('td', {}, number.format(count))));
  const head = html('tr', {}, html('th', {scope: 'col'}, 'so long'), html('th', {scope: 'col'}, 'how many'));
  return html('details', {}, html('summary', {}, 'as numbers'), html('table', {}, html('thead', {}, head), html('tbody', {}, ...rows)));
}

function showDistribution(box, times, what) {
  if (times.count === 0) {
    box.replaceChildren(html('p', {class: 'nothing'}, `No ${what}s.`));
    return;
  }
  box.classList.add('chart');
  const picture = html('div');
  box.replaceChildren(picture, binsTable(times));
  let drawn = 0;
  const draw = () => {
    const width = picture.clientWidth;
    if (width > 0 && width !== drawn) {
      drawn = width;
      picture.replaceChildren(drawDistribution(times, width, what));
    }
  };
  draw();
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(picture);  // not within: it changes sizes
}

// --- the head

function showHead() {
  const {from, to} = data;
  at('range').textContent = from === undefined
    ? 'No record is in what was asked for.'
    : `${second(from)} to ${second(to)} UTC, ${duration(to - from)}`;
  const about = [
    ['Records', number.format(data.records)],
    ['Files', data.files.map(shown).join(', ')],
    ['Locks', data.filter.lock === null ? 'all' : `that match ${shown(data.filter.lock)}`],
    ['From', data.filter.since === null ? 'the first record' : `${moment(data.filter.since)} UTC`],
    ['Before', data.filter.until === null ? 'the end' : `${moment(data.filter.until)} UTC`],
    ['Made', `${second(data.made)} UTC by monolockctl ${data.version}`],
  ];
  at('about').append(...about.flatMap(([name, text]) => [html('dt', {}, name), html('dd', {}, html('bdi', {}, text))]));
}

function showNotes() {
  const {limits} = data;
  const notes = [];
  if (data.others.records > 0) {
    notes.push(`Figures are kept for the first ${number.format(limits.locks)} locks. ${plural(data.others.records, 'record')} of further locks are in the row “(others)”: report fewer with --lock.`);
  }
  const forgotten = data.locks.filter(each => each.forgotten > 0).length;
  if (forgotten > 0) {
    notes.push(`Of ${plural(forgotten, 'lock')} only the last ${limits.ownerships} ownerships are drawn. The figures are of all. For more of the time, report less of it with --since and --until.`);
  }
  if (data.owners_full) {
    notes.push(`More than ${number.format(limits.owners)} owners: those that came later are drawn as “others”.`);
  }
  if (data.incidents_forgotten > 0) {
    notes.push(`Of expiries, forced ends and denials the last ${number.format(limits.incidents)} are listed, ${plural(data.incidents_forgotten, 'one')} before them ${data.incidents_forgotten === 1 ? 'is' : 'are'} not. The figures are of all.`);
  }
  if (data.lost > 0) {
    notes.push(`The server lost ${plural(data.lost, 'record')} (audit_gap): figures are too small by that, and timelines may miss ownerships.`);
  }
  if (data.disordered > 0) {
    notes.push(`${plural(data.disordered, 'grant')} ${data.disordered === 1 ? 'stands' : 'stand'} behind later ones of the same lock, so timelines are wrong: the files were not named oldest first, or one was named twice.`);
  }
  if (data.unreadable > 0) {
    notes.push(`${plural(data.unreadable, 'line')} could not be read, as a crash may leave them: monolockctl audit verify says which.`);
  }
  if (notes.length > 0) {
    at('notes').hidden = false;
    at('notes').querySelector('ul').append(...notes.map(each => html('li', {}, each)));
  }
}

const COUNTS = [
  ['grants', 'Grants', false], ['expired', 'Expired', true], ['io_timeout', 'Did not read', true], ['force', 'Forced', true],
  ['denied', 'Denied', true], ['kicked', 'Kicked', true],
];

function showTotals() {
  const tile = (key, word, value) => html('div', {}, html('dt', {}, word), html('dd', {id: `total-${key}`}, value));
  at('totals').append(
    tile('locks', 'Locks', number.format(data.locks.length) + (data.others.records > 0 ? '+' : '')),
    ...COUNTS.map(([key, word]) => tile(key, word, number.format(data.total[key]))),
  );
  showDistribution(at('waits'), data.total.wait_ms, 'wait');
  showDistribution(at('holds'), data.total.held_ms, 'hold');
}

// --- the table of locks

const TIMES = ['p50', 'p90', 'p99', 'max'];
const COLUMNS = [
  {id: 'lock', word: 'Lock', of: lock => lock.lock},
  {id: 'grants', word: 'Grants', of: lock => lock.grants},
  ...['wait_ms', 'held_ms'].flatMap(key => TIMES.map(time => ({
    id: `${key}-${time}`, word: time, time: true, of: lock => lock[key][time],
  }))),
  ...COUNTS.slice(1).map(([id, word]) => ({id, word, bad: true, of: lock => lock[id]})),
];
const state = {sort: 'grants', descending: true, filter: '', rows: ROWS, cards: CARDS, incidents: INCIDENTS};

function cell(column, lock) {
  const value = column.of(lock);
  const name = value === 0 ? 'zero' : column.bad ? 'bad' : '';
  const text = column.time ? duration(value) : number.format(value);
  return html('td', {'data-column': column.id, 'data-value': value, ...(name && {class: name})}, text);
}

function row(name, lock) {
  return html('tr', {}, html('th', {scope: 'row'}, html('bdi', {}, name)), ...COLUMNS.slice(1).map(column => cell(column, lock)));
}

function head() {
  const group = (span, word) => html('th', {colspan: span, scope: 'colgroup'}, word);
  const headings = COLUMNS.map(column => {
    const button = html('button', {type: 'button'}, column.word);
    const spoken = {wait_ms: 'wait ', held_ms: 'hold '}[column.id.split('-')[0]] ?? '';
    button.setAttribute('aria-label', spoken + column.word);
    button.addEventListener('click', () => {
      state.descending = state.sort === column.id ? !state.descending : column.id !== 'lock';
      state.sort = column.id;
      showLocks();
      at('locks').querySelector('th[aria-sort] button').focus();
    });
    const heading = html('th', {scope: 'col'}, button);
    if (state.sort === column.id) {
      heading.setAttribute('aria-sort', state.descending ? 'descending' : 'ascending');
    }
    return heading;
  });
  return html('thead', {}, html('tr', {class: 'group'}, group(2, ''), group(4, 'Wait'), group(4, 'Hold'), group(5, 'Ended badly')), html('tr', {}, ...headings));
}

function chosen() {
  const column = COLUMNS.find(each => each.id === state.sort);
  const compare = (left, right) => {
    const [one, other] = [column.of(left), column.of(right)];
    return one < other ? -1 : one > other ? 1 : 0;
  };
  const locks = data.locks.filter(lock => lock.lock.includes(state.filter));
  locks.sort((left, right) => (state.descending ? -compare(left, right) : compare(left, right)) || (left.lock < right.lock ? -1 : 1));
  return locks;
}

function offer(button, left, step, noun, then) {
  button.hidden = left <= 0;
  button.textContent = `Show ${Math.min(left, step)} more of ${plural(left, noun)}`;
  button.onclick = then;
}

function showLocks() {
  const locks = chosen();
  const rows = locks.slice(0, state.rows).map(lock => row(shown(lock.lock), lock));
  const feet = state.filter === '' && data.others.records > 0 ? [row('(others)', data.others)] : [];
  const all = html('tfoot', {}, ...feet, row('(all)', data.total));
  all.lastChild.id = 'all';
  at('locks').replaceChildren(head(), html('tbody', {}, ...rows), all);
  at('count').textContent = state.filter === '' ? plural(locks.length, 'lock') : `${number.format(locks.length)} of ${plural(data.locks.length, 'lock')}`;
  offer(at('more-locks'), locks.length - rows.length, ROWS, 'lock', () => {
    state.rows += ROWS;
    showLocks();
  });
  showCards(locks);
}

// --- the timelines

function timelineOf(lock) {
  const intervals = lock.ownerships.map(([from, to, end, waited, token, owner]) => ({
    owner: shown(data.owners[owner]), from, to, token,
    end: to === null ? null : end === UNRECORDED ? 'unrecorded' : REASONS[end],
    ...(waited >= 0 && {waited}),
  })).sort((left, right) => left.from - right.from);
  const known = lock.forgotten > 0 ? intervals[0].from : data.from;
  if (at('one-axis').checked) {
    return {from: data.from, to: Math.max(data.to, data.from + 1000), knownFrom: known, intervals};
  }
  const from = Math.min(...intervals.map(each => each.from - (each.waited ?? 0)));
  const to = Math.max(...intervals.map(each => each.to ?? data.to));
  const room = Math.max(500, (to - from) / 50);
  // Not beyond what the records tell of: there it is not known whether the lock was free.
  const start = Math.max(from - room, Math.min(from, data.from));
  const end = Math.max(start + 1000, Math.min(to + room, Math.max(to, data.to)));
  return {from: start, to: end, knownFrom: lock.forgotten > 0 ? known : start, intervals};
}

function card(lock) {
  const words = [plural(lock.grants, 'grant')];
  for (const [key, word] of COUNTS.slice(1)) {
    if (lock[key] > 0) {
      words.push(`${number.format(lock[key])} ${word.toLowerCase()}`);
    }
  }
  if (lock.forgotten > 0) {
    words.push(`the last ${lock.ownerships.length} ownerships are drawn, ${number.format(lock.forgotten)} before them are not`);
  }
  const made = html('article', {class: 'card'}, html('h3', {}, html('bdi', {}, shown(lock.lock))), html('p', {}, words.join(', ')));
  if (lock.ownerships.length === 0) {
    made.append(html('p', {class: 'nothing'}, 'Nobody owned it.'));
    return made;
  }
  const drawing = html('div');
  const pair = html('div', {class: 'pair'});
  const details = html('details', {}, html('summary', {}, 'waits and holds'), pair);
  details.addEventListener('toggle', () => {
    if (details.open && pair.childElementCount === 0) {
      for (const [key, title, what] of [['wait_ms', 'Waits', 'wait'], ['held_ms', 'Holds', 'hold']]) {
        const box = html('div');
        pair.append(html('figure', {}, html('figcaption', {}, title), box));
        showDistribution(box, lock[key], what);
      }
    }
  });
  made.append(drawing, details);
  made.draw = () => new TimelineView(drawing).update(timelineOf(lock));
  return made;
}

function showCards(locks) {
  const cards = locks.slice(0, state.cards).map(card);
  at('timelines').replaceChildren(...cards);
  cards.forEach(each => each.draw?.());
  offer(at('more-timelines'), locks.length - cards.length, CARDS, 'lock', () => {
    state.cards += CARDS;
    showCards(locks);
  });
}

// --- what went wrong

const KINDS = {
  expired: 'fell silent', io_timeout: 'did not read its replies', force: 'ended by an operator', denied: 'denied by the access rules',
  kicked: 'ended in the queue by an operator', gap: 'records lost',
};

function incidentRow([time, kind, lock, who, value]) {
  const word = html('span', {class: 'kind'});
  if (['expired', 'io_timeout', 'force'].includes(kind)) {
    const picture = element('svg', {width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true'}, element('path', {class: `mark mark-${kind}`, d: markPath(kind, 9, 9)}));
    word.append(html('span', {class: 'timeline'}, picture));
  }
  word.append(KINDS[kind] ?? kind);
  const end = {gap: () => number.format(value), denied: () => '', kicked: () => ''}[kind] ?? (() => duration(value));
  const name = text => text === '' ? '' : html('bdi', {}, shown(text));
  return html('tr', {'data-kind': kind}, html('td', {}, moment(time)), html('td', {}, word), html('td', {}, name(lock)), html('td', {}, name(who)), html('td', {}, end()));
}

function showIncidents() {
  const newest = [...data.incidents].reverse();
  if (newest.length === 0) {
    at('incidents-none').hidden = false;
    return;
  }
  const headings = ['Time (UTC)', 'What', 'Lock', 'Who', 'Owned for'].map(word => html('th', {scope: 'col'}, word));
  const rows = newest.slice(0, state.incidents).map(incidentRow);
  at('incidents').replaceChildren(html('thead', {}, html('tr', {}, ...headings)), html('tbody', {}, ...rows));
  offer(at('more-incidents'), newest.length - rows.length, INCIDENTS, 'line', () => {
    state.incidents += INCIDENTS;
    showIncidents();
  });
}

showHead();
showNotes();
showTotals();
showLocks();
showIncidents();

at('controls').addEventListener('submit', event => event.preventDefault());
at('filter').addEventListener('input', () => {
  Object.assign(state, {filter: at('filter').value, rows: ROWS, cards: CARDS});
  showLocks();
});
at('one-axis').addEventListener('change', () => showCards(chosen()));
