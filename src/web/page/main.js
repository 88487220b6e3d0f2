// The page: what is wrong first, then the view that the address names.

import {Live} from './live.js';
import {Lock} from './lock.js';
import {Locks} from './locks.js';
import {Overview} from './overview.js';
import {Records, problemsOf} from './problems.js';
import {clock} from './timeline.js';
import {el, reconcile, setText, tickAges} from './text.js';

const VIEWS = {'/': Overview, '/locks': Locks, '/lock': Lock};
const MODES = {
  starting: 'connecting…', live: 'live', polling: 'polling every 2 s', lost: 'no answer', paused: 'paused',
};
const TICK = 1000;

const live = new Live();
const records = new Records();
const main = document.getElementById('main');
let view = null;
let ticker = 0;

// --- what is wrong

function showProblems() {
  const at = live.answeredAt ? `${clock(live.answeredAt)} UTC` : '';
  const found = problemsOf(records, live.mode, at);
  const serious = found.filter(each => each.level !== 'note').length;
  const unknown = records.info === null && live.mode !== 'lost';
  const box = document.getElementById('problems');
  box.className = unknown ? 'unknown' : found.some(each => each.level === 'bad') ? 'bad' : serious > 0 ? 'warn' : 'well';
  setText(document.getElementById('problems-title'),
    unknown ? 'Asking the server…' : serious > 0 ? `${serious} ${serious === 1 ? 'thing needs' : 'things need'} attention`
      : 'Nothing is wrong that the server can see');
  reconcile(document.getElementById('problems-list'), found, each => each.title,
    each => el('li', {class: each.level}, el('strong', {}, each.title), el('span')),
    (row, each) => setText(row.lastChild, each.text ? `. ${each.text}` : ''));
  const mark = serious > 0 ? `(${serious}) ` : '';
  document.title = `${mark}${view?.title ?? ''} – monolock`;
}

// --- views

function go() {
  const address = location.hash.startsWith('#/') ? location.hash.slice(1) : '/';
  const [path, query = ''] = address.split(/\?(.*)/s);
  const View = Object.hasOwn(VIEWS, path) ? VIEWS[path] : Overview;
  const isFirst = view === null;
  view?.close();
  main.replaceChildren();
  view = new View(live, new URLSearchParams(query));
  view.open(main);
  const name = View === Overview ? 'overview' : 'locks';
  document.querySelectorAll('nav a').forEach(each => {
    if (each.dataset.view === name) {
      each.setAttribute('aria-current', View === Lock ? 'true' : 'page');
    } else {
      each.removeAttribute('aria-current');
    }
  });
  if (records.info) {
    view.info?.(records.info);
  }
  showProblems();
  if (!isFirst) {
    main.querySelector('h1').focus({preventScroll: true});
    scrollTo(0, 0);
  }
}

// --- the wiring

live.addEventListener('mode', ({detail: mode}) => {
  const shown = document.getElementById('mode');
  shown.className = `mode mode-${mode}`;
  setText(shown, MODES[mode]);
  clearInterval(ticker);
  if (mode !== 'paused') {
    ticker = setInterval(tickAges, TICK);
  }
  showProblems();
});
live.addEventListener('figures', ({detail}) => view.figures?.(detail));
live.addEventListener('changes', ({detail}) => view.changes?.(detail));
live.addEventListener('info', ({detail: info}) => {
  records.add(info);
  setText(document.getElementById('where'), info.config.listen ? `locks on ${info.config.listen}` : info.state);
  view.info?.(info);
  showProblems();
});

document.getElementById('skip').addEventListener('click', event => {
  event.preventDefault();
  main.focus();
});
// The slash finds, where nothing is being typed.
addEventListener('keydown', event => {
  const field = document.getElementById('match');
  if (event.key === '/' && field && !event.ctrlKey && !event.metaKey && !event.altKey &&
      !document.activeElement?.matches('input, select, textarea') && !document.getElementById('confirm').open) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});
addEventListener('hashchange', go);

go();
live.begin();
