// Which locks there are: filtered and sorted by the server, a screen at a time.

import {ApiError, ask, callText, calls} from './api.js';
import {Repeater} from './live.js';
import {isLate, lockHref} from './lock.js';
import {plainName} from './names.js';
import {count, el, findFocus, reconcile, setAge, setText, shortly, shownName, whoOf} from './text.js';

const PAGE = 50;
const ORDERS = {name: 'Name', waiters: 'Longest queue first', held: 'Held longest first'};

export const locksHref = parameters => `#/locks?${new URLSearchParams(parameters)}`;

// Where the listing was looked at last.
let last = '#/locks';
export const lastLocksHref = () => last;

export class Locks {
  title = 'Locks';
  #match;
  #sort;
  #from;
  #input;
  #order;
  #rows = el('tbody');
  #summary = el('p', {class: 'summary', role: 'status'}, '…');
  #before;
  #behind;
  #call = el('p', {class: 'call'});
  #repeater;
  #typing = 0;

  constructor(live, parameters) {
    this.#match = parameters.get('match') ?? '';
    this.#sort = Object.hasOwn(ORDERS, parameters.get('sort')) ? parameters.get('sort') : 'name';
    this.#from = Math.max(0, Number.parseInt(parameters.get('from') ?? '0', 10) || 0);
  }

  open(main) {
    this.#input = el('input', {
      id: 'match', type: 'search', maxlength: 511, autocomplete: 'off', spellcheck: 'false', value: this.#match,
      placeholder: 'nightly*', 'aria-describedby': 'match-help', oninput: () => this.#typed(),
    });
    this.#order = el('select', {id: 'sort', onchange: () => this.#choose({sort: this.#order.value, from: 0})},
      Object.entries(ORDERS).map(([key, word]) => el('option', {value: key, selected: key === this.#sort}, word)));
    this.#before = el('button', {type: 'button', onclick: () => this.#turn(-PAGE)}, '‹ Previous');
    this.#behind = el('button', {type: 'button', onclick: () => this.#turn(PAGE)}, 'Next ›');
    last = location.hash || '#/locks';
    main.append(
      el('h1', {tabindex: '-1'}, 'Locks'),
      el('form', {class: 'filter', role: 'search', onsubmit: event => this.#submitted(event)},
        el('div', {}, el('label', {for: 'match'}, 'Name'), this.#input),
        el('div', {}, el('label', {for: 'sort'}, 'Sort'), this.#order),
        el('p', {id: 'match-help', class: 'help'}, 'The whole name, with * for any run of characters and ? for one.')),
      el('div', {class: 'pager'}, this.#summary, el('span', {class: 'buttons'}, this.#before, this.#behind)),
      el('div', {class: 'panel table'},
        el('table', {class: 'locks'},
          el('caption', {class: 'unseen'}, 'Locks'),
          el('thead', {}, el('tr', {},
            el('th', {scope: 'col'}, 'Lock'), el('th', {scope: 'col', class: 'wide'}, 'Owner'),
            el('th', {scope: 'col', class: 'number'}, 'Held'), el('th', {scope: 'col', class: 'number wide'}, 'Silent'),
            el('th', {scope: 'col', class: 'number'}, 'Waiters'))),
          this.#rows)),
      this.#call,
    );
    this.#repeater = new Repeater(signal => this.#refresh(signal), 2000).start();
  }

  close() {
    clearTimeout(this.#typing);
    this.#repeater.stop();
  }

  changes() {
    this.#repeater.soon();
  }

  #typed() {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => this.#choose({match: this.#input.value, from: 0}), 250);
  }

  #submitted(event) {
    event.preventDefault();
    clearTimeout(this.#typing);
    this.#choose({match: this.#input.value, from: 0});
  }

  #turn(by) {
    this.#choose({from: Math.max(0, this.#from + by)});
  }

  // The address follows, so that it can be kept; "back" leads out of the listing, not through every letter.
  #choose({match = this.#match, sort = this.#sort, from = this.#from}) {
    this.#match = match;
    this.#sort = sort;
    this.#from = from;
    const shown = {};
    if (match) {
      shown.match = match;
    }
    if (sort !== 'name') {
      shown.sort = sort;
    }
    if (from > 0) {
      shown.from = from;
    }
    last = locksHref(shown);
    history.replaceState(null, '', last);
    this.#repeater.stop();
    this.#repeater.start();
  }

  async #refresh(signal) {
    const call = calls.locks({
      match: this.#match, sort: this.#sort, from: this.#from || undefined, limit: PAGE, waiters: 0,
    });
    setText(this.#call, callText(call));
    let answer;
    try {
      answer = await ask(call, signal);
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      setText(this.#summary, `Not known: ${failure.message}.`);
      return;
    }
    const {locks, total} = answer;
    if (locks.length === 0 && this.#from > 0) {
      this.#choose({from: Math.max(0, Math.floor((total - 1) / PAGE) * PAGE)});
      return;
    }
    reconcile(this.#rows, locks, lock => lock.name, lockRow, updateRow);
    setText(this.#summary, this.#summaryOf(locks.length, total));
    const focused = document.activeElement;
    this.#before.disabled = this.#from === 0;
    this.#behind.disabled = this.#from + locks.length >= total;
    if (focused?.disabled) {
      findFocus();
    }
  }

  #summaryOf(shown, total) {
    if (total === 0) {
      return this.#match ? 'No lock with such a name is owned or waited for.' : 'No lock is owned or waited for.';
    }
    return `${count(this.#from + 1)}–${count(this.#from + shown)} of ${count(total)}`;
  }
}

function lockRow(lock) {
  return el('tr', {},
    el('td', {},
      el('a', {href: lockHref(lock.name), title: plainName(lock.name)}, shownName(lock.name)),
      el('div', {class: 'sub narrow'})),
    el('td', {class: 'wide owner'}), el('td', {class: 'number'}), el('td', {class: 'number wide'}),
    el('td', {class: 'number'}));
}

function updateRow(row, lock) {
  const [name, owner, held, silent, waiters] = row.children;
  const {holder} = lock;
  if (row.dataset.token !== String(holder?.token)) {
    row.dataset.token = holder?.token;
    owner.replaceChildren(holder ? shownName(whoOf(holder)) : 'nobody');
    name.lastChild.replaceChildren(holder ? shownName(whoOf(holder)) : 'nobody');
  }
  setAge(held, holder?.held_ms);
  setAge(silent, holder?.silent_ms, performance.now(), holder ? ` of ${shortly(holder.lease_ms)}` : '');
  silent.classList.toggle('late', Boolean(holder) && isLate(holder));
  setText(waiters, count(lock.waiters_total));
  waiters.classList.toggle('some', lock.waiters_total > 0);
}
