// One lock: its owner, its queue, and who had it before.

import {ApiError, ask, callText, calls} from './api.js';
import {Confirmation} from './confirm.js';
import {Repeater} from './live.js';
import {lastLocksHref} from './locks.js';
import {plainName} from './names.js';
import {count, el, plural, reconcile, setAge, setShown, setText, shownName, shortly, whoOf} from './text.js';
import {ENDS, TimelineView, clock, duration, intervalsOf} from './timeline.js';

const QUEUE_STEP = 100;
const RANGES = [
  ['all', 'all that is remembered'], ['600', 'the last 10 minutes'], ['3600', 'the last hour'], ['86400', 'the last day'],
];
const RANGE_MIN = 60_000;

export const lockHref = name => `#/lock?name=${encodeURIComponent(name)}`;

export class Lock {
  title;
  #name;
  #lock = null;
  #history = null;
  #waiters = QUEUE_STEP;
  #owner = el('section', {class: 'panel', 'aria-labelledby': 'owner-title'});
  #ownerFacts = el('dl', {class: 'facts'});
  #ownerNote = el('p', {class: 'empty', role: 'status'}, '…');
  #held = el('dd', {class: 'number'});
  #silent = el('span', {class: 'number'});
  #meter = el('progress', {'aria-label': 'Silence, as a part of the lease'});
  #release;
  #queueTitle = el('h2', {id: 'queue-title'}, 'Queue');
  #queue = el('tbody');
  #queueTable;
  #queueNote = el('p', {class: 'empty'}, '…');
  #more;
  #lockCall = el('p', {class: 'call'});
  #timelineBox = el('div');
  #timeline;
  #range;
  #past = el('tbody');
  #pastNote = el('p', {class: 'help'});
  #looking;
  #remembering;

  constructor(live, parameters) {
    this.#name = parameters.get('name') ?? '';
    this.title = plainName(this.#name);
  }

  open(main) {
    this.#release = el('button', {
      type: 'button', class: 'danger', hidden: true, onclick: () => this.#confirmRelease(),
    }, 'Release…');
    this.#more = el('button', {type: 'button', hidden: true, onclick: () => this.#showMore()}, `Show ${QUEUE_STEP} more`);
    this.#range = el('select', {id: 'range', onchange: () => this.#drawTimeline()},
      RANGES.map(([key, word]) => el('option', {value: key}, word)));
    this.#owner.append(
      el('div', {class: 'panel-head'}, el('h2', {id: 'owner-title'}, 'Owner'), this.#release),
      this.#ownerFacts, this.#ownerNote);
    this.#queueTable = el('table', {class: 'queue'},
      el('caption', {class: 'unseen'}, 'Waiters in their order'),
      el('thead', {}, el('tr', {},
        el('th', {scope: 'col', class: 'number'}, '#'), el('th', {scope: 'col'}, 'Waiter'),
        el('th', {scope: 'col', class: 'number'}, 'Waits'), el('th', {scope: 'col', class: 'number wide'}, 'Lease'),
        el('th', {scope: 'col'}, el('span', {class: 'unseen'}, 'Action')))),
      this.#queue);
    main.append(
      el('p', {class: 'back'}, el('a', {href: lastLocksHref()}, '‹ Locks')),
      el('h1', {class: 'lock-name', tabindex: '-1'}, shownName(this.#name)),
      this.#owner,
      el('section', {class: 'panel', 'aria-labelledby': 'queue-title'},
        this.#queueTitle, this.#queueTable, this.#queueNote, this.#more),
      this.#lockCall,
      el('section', {class: 'panel', 'aria-labelledby': 'past-title'},
        el('div', {class: 'panel-head'},
          el('h2', {id: 'past-title'}, 'Recent owners'),
          el('span', {}, el('label', {for: 'range', class: 'unseen'}, 'Show'), this.#range)),
        this.#timelineBox, this.#pastNote,
        el('details', {}, el('summary', {}, 'The same as a table'),
          el('div', {class: 'table'}, el('table', {class: 'past'},
            el('thead', {}, el('tr', {},
              el('th', {scope: 'col'}, 'Owner'), el('th', {scope: 'col'}, 'From (UTC)'),
              el('th', {scope: 'col', class: 'number'}, 'Waited'), el('th', {scope: 'col', class: 'number'}, 'Held'),
              el('th', {scope: 'col'}, 'End'), el('th', {scope: 'col', class: 'number'}, 'Token'))),
            this.#past)))),
      el('p', {class: 'call'}, callText(calls.history(this.#name))),
    );
    this.#timeline = new TimelineView(this.#timelineBox);
    this.#looking = new Repeater(signal => this.#look(signal), 2000).start();
    this.#remembering = new Repeater(signal => this.#remember(signal), 4000).start();
  }

  close() {
    this.#looking.stop();
    this.#remembering.stop();
    this.#timeline.destroy();
    Confirmation.close();
  }

  changes(changes) {
    if (changes.some(change => change.name === this.#name)) {
      this.#soon();
    }
  }

  #soon() {
    this.#looking.soon();
    this.#remembering.soon();
  }

  #showMore() {
    this.#waiters += QUEUE_STEP;
    this.#looking.soon();
  }

  // --- now

  async #look(signal) {
    const call = calls.lock(this.#name, this.#waiters);
    setText(this.#lockCall, callText(call));
    try {
      this.#lock = await ask(call, signal);
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      if (failure.status !== 404) {
        setText(this.#ownerNote, `Not known: ${failure.message}.`);
        setShown(this.#ownerNote, true);
        return;
      }
      this.#lock = {name: this.#name, holder: null, waiters: [], waiters_total: 0, gone: true};
    }
    this.#showOwner(this.#lock);
    this.#showQueue(this.#lock);
    Confirmation.look(this.#lock);
  }

  #showOwner({holder, gone}) {
    setShown(this.#release, Boolean(holder));
    setShown(this.#ownerNote, !holder);
    setShown(this.#ownerFacts, Boolean(holder));
    if (!holder) {
      setText(this.#ownerNote, gone ? 'Nobody owns this lock and nobody waits for it: it does not exist now.'
        : 'Nobody owns it: grants are withheld for now.');
      return;
    }
    const facts = [
      ['Owner', () => shownName(whoOf(holder))],
      ['Address', () => holder.remote_addr],
      ['Held for', () => null],
      ['Since', () => `${clock(Date.parse(holder.since), Date.now())} UTC`],
      ['Silent for', () => null],
      ['Token', () => String(holder.token)],
      ['Id', () => String(holder.id)],
    ].filter(([word]) => word !== 'Address' || holder.identity);
    reconcile(this.#ownerFacts, facts, ([word]) => word, ([word]) => this.#ownerFact(word), (row, [, value]) => {
      if (row.dataset.token !== String(holder.token)) {
        row.dataset.token = holder.token;
        const shown = value();
        if (shown !== null) {
          row.lastChild.replaceChildren(shown);
        }
      }
    });
    setAge(this.#held, holder.held_ms);
    setAge(this.#silent, holder.silent_ms, performance.now(), ` of ${shortly(holder.lease_ms)}`);
    this.#meter.max = holder.lease_ms;
    this.#meter.value = holder.silent_ms;
    this.#meter.classList.toggle('late', isLate(holder));
  }

  #ownerFact(word) {
    const isNumber = word === 'Token' || word === 'Id';
    const value = word === 'Held for' ? this.#held
      : word === 'Silent for' ? el('dd', {class: 'silence'}, this.#silent, this.#meter)
        : el('dd', {class: isNumber ? 'code-text' : null});
    return el('div', {}, el('dt', {}, word), value);
  }

  #showQueue({waiters, waiters_total: total}) {
    setText(this.#queueTitle, total > 0 ? `Queue: ${plural(total, 'waiter', 'waiters')}` : 'Queue');
    setShown(this.#queueTable, total > 0);
    setShown(this.#queueNote, total === 0);
    setText(this.#queueNote, 'Nobody waits.');
    setShown(this.#more, total > waiters.length);
    reconcile(this.#queue, waiters.map((waiter, index) => ({...waiter, place: index + 1})), waiter => waiter.id,
      waiter => this.#waiterRow(waiter), (row, waiter) => {
        setText(row.children[0], count(waiter.place));
        setAge(row.children[2], waiter.waited_ms);
      });
  }

  #waiterRow(waiter) {
    const address = waiter.identity ? el('div', {class: 'sub'}, waiter.remote_addr) : null;
    return el('tr', {},
      el('td', {class: 'number'}), el('td', {}, shownName(whoOf(waiter)), address), el('td', {class: 'number'}),
      el('td', {class: 'number wide'}, shortly(waiter.lease_ms)),
      el('td', {class: 'action'}, el('button', {
        type: 'button', class: 'small', 'aria-label': `Kick ${plainName(whoOf(waiter))}`,
        onclick: () => this.#confirmKick(waiter),
      }, 'Kick…')));
  }

  // --- before

  async #remember(signal) {
    try {
      this.#history = await ask(calls.history(this.#name), signal);
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      setText(this.#pastNote, `Not known: ${failure.message}.`);
      return;
    }
    this.#drawTimeline();
  }

  #drawTimeline() {
    if (!this.#history) {
      return;
    }
    const intervals = intervalsOf(this.#history.history).map(each => ({...each, owner: plainName(each.owner)}));
    const to = Date.parse(this.#history.now);
    const known = Date.parse(this.#history.complete_after);
    const first = Math.min(to - RANGE_MIN, ...intervals.map(each => each.from));
    const from = this.#range.value === 'all' ? first : to - Number(this.#range.value) * 1000;
    this.#timeline.update({from, to, knownFrom: Math.min(known, to), intervals});
    setText(this.#pastNote, `Complete since ${clock(known, to)} UTC; the audit log is the full record.`);
    reconcile(this.#past, intervals.toReversed?.() ?? [...intervals].reverse(), each => each.token,
      each => pastRow(each, to), updatePast);
  }

  // --- ending a claim

  #confirmRelease() {
    const {holder, waiters, waiters_total: total} = this.#lock;
    const next = waiters[0];
    const after = next
      ? ['The next in the queue is granted at once: ', shownName(whoOf(next)), `, who waits for ${duration(next.waited_ms)}.`,
        ` ${count(total - 1)} more wait.`]
      : ['Nobody waits, so the lock is free then.'];
    new Confirmation({
      title: 'Release this lock?',
      facts: this.#factsOf(holder, [['Held for', duration(holder.held_ms)], ['Token', String(holder.token)]]),
      effects: [
        ['The session of ', shownName(whoOf(holder)), ' ends: it hears “closed by administrator” within a round trip.'],
        el('span', {}, after),
        'The old job and the next one overlap for as long as the old one needs to stop. If it cannot stop, only the fencing '
          + 'token protects what both write to.',
        'A client that retries comes back at the end of the queue.',
        `Only if the owner's token is still ${holder.token}: nobody else is touched.`,
      ].map(each => Array.isArray(each) ? el('span', {}, each) : each),
      call: calls.release(this.#name, holder.token),
      verb: 'Release',
      stillSo: lock => lock.holder?.token === holder.token ? null
        : lock.holder ? 'The lock has another owner by now. Close this and look again.'
          : 'The lock has no owner any more. Close this and look again.',
      told: ended => ['Done: ', shownName(whoOf(ended)), ` does not own the lock any more, after ${duration(ended.held_ms)}.`],
      after: () => this.#soon(),
    }).show();
  }

  #confirmKick(waiter) {
    const place = this.#lock.waiters.findIndex(each => each.id === waiter.id) + 1;
    new Confirmation({
      title: 'Kick this waiter?',
      facts: this.#factsOf(waiter, [['Place', `${count(place)} of ${count(this.#lock.waiters_total)}`], ['Id', String(waiter.id)]]),
      effects: [
        el('span', {}, 'The session of ', shownName(whoOf(waiter)),
          ' ends: it hears “closed by administrator” within a round trip.'),
        'All others keep their order, and the owner keeps the lock.',
        'A client that retries comes back at the end of the queue. To keep it out, take it out of the access rules.',
        'If it owns the lock by then, or is gone, nothing happens.',
      ],
      call: calls.kick(this.#name, waiter.id),
      verb: 'Kick',
      stillSo: lock => lock.waiters.some(each => each.id === waiter.id) || lock.waiters_total > lock.waiters.length ? null
        : 'It does not wait any more. Close this and look again.',
      told: ended => ['Done: ', shownName(whoOf(ended)), ` left the queue after ${duration(ended.waited_ms)}.`],
      after: () => this.#soon(),
    }).show();
  }

  #factsOf(claim, more) {
    return [['Lock', shownName(this.#name)], ['Client', shownName(whoOf(claim))],
      ...claim.identity ? [['Address', claim.remote_addr]] : [], ...more];
  }
}

// Who lives beats four times in a lease.
export const isLate = holder => holder.silent_ms > holder.lease_ms / 3;

function pastRow(interval, to) {
  return el('tr', {},
    el('td', {}, el('bdi', {}, interval.owner)), el('td', {class: 'number-left'}, clock(interval.from, to)),
    el('td', {class: 'number'}, interval.waited === undefined ? '' : duration(interval.waited)),
    el('td', {class: 'number'}), el('td'), el('td', {class: 'number code-text'}, String(interval.token)));
}

function updatePast(row, interval) {
  const owned = interval.to === null;
  setText(row.children[3], owned ? '' : duration(interval.to - interval.from));
  setText(row.children[4], owned ? 'still owns it' : ENDS[interval.end]?.word ?? interval.end);
  row.children[4].className = owned ? 'word' : `word word-${interval.end}`;
}
