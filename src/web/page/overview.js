// The whole server: its figures, the longest queues, what changed last.

import {ApiError, EVENTS, RECENT, ask, callText, calls} from './api.js';
import {Repeater} from './live.js';
import {lockHref} from './lock.js';
import {plainName} from './names.js';
import {Plot} from './plot.js';
import {count, el, rate, reconcile, setAge, setShown, setText, shownName, whoOf} from './text.js';
import {ENDS, clock, duration} from './timeline.js';

const CHANGES_SHOWN = RECENT;
const QUEUES_SHOWN = 5;

export class Overview {
  title = 'Overview';
  #plots;
  #facts = el('dl', {class: 'facts'});
  #queues = el('ol', {class: 'rows queues'});
  #queuesNote = el('p', {class: 'empty'}, '…');
  #changes = el('ol', {class: 'rows changes'});
  #changesNote = el('p', {class: 'empty'}, 'No lock has changed hands yet.');
  #latest = [];
  #uptime = el('dd', {class: 'number'});
  #repeater;
  #queuesCall = calls.locks({sort: 'waiters', limit: QUEUES_SHOWN, waiters: 0});

  constructor(live) {
    this.live = live;
    this.#plots = {
      sessions: new Plot('Sessions', 'Open connections that own or wait', count),
      locks: new Plot('Owners', 'Locks that have an owner', count),
      waiters: new Plot('Waiters', 'Sessions in a queue', count),
      grants_per_s: new Plot('Grants / s', 'Locks given, at once or from a queue', rate),
      handovers_per_s: new Plot('Handovers / s', 'Grants to the next in a queue, the moment an owner ended', rate),
      heartbeats_per_s: new Plot('Heartbeats / s', 'How much the sessions beat', rate),
    };
  }

  open(main) {
    main.append(
      el('h1', {class: 'quiet-title', tabindex: '-1'}, 'Overview'),
      el('section', {'aria-label': 'Figures'},
        el('dl', {class: 'tiles'}, Object.values(this.#plots).map(each => each.element)),
        el('p', {class: 'call'}, `GET ${EVENTS}`)),
      el('div', {class: 'columns'},
        el('section', {'aria-labelledby': 'queues-title', class: 'panel'},
          el('h2', {id: 'queues-title'}, 'Longest queues'), el('div', {class: 'room'}, this.#queuesNote, this.#queues),
          el('p', {class: 'call'}, callText(this.#queuesCall))),
        el('section', {'aria-labelledby': 'changes-title', class: 'panel'},
          el('h2', {id: 'changes-title'}, 'Last changes'), el('div', {class: 'room'}, this.#changesNote, this.#changes),
          el('p', {class: 'call'}, `GET ${EVENTS}`))),
      el('section', {'aria-labelledby': 'server-title', class: 'panel'},
        el('h2', {id: 'server-title'}, 'Server'), this.#facts,
        el('p', {class: 'call'}, callText(calls.info()))),
    );
    this.#repeater = new Repeater(signal => this.#refresh(signal), 3000).start();
  }

  close() {
    this.#repeater.stop();
  }

  figures(now) {
    for (const [key, plot] of Object.entries(this.#plots)) {
      plot.push(now[key]);
    }
  }

  info(info) {
    this.#plots.sessions.note(info.sessions_max > 0 ? `of ${count(info.sessions_max)} at most` : '');
    const {config} = info;
    setAge(this.#uptime, info.uptime_ms);
    const files = [['TLS', config.tls ? config.mtls ? 'with client certificates' : 'yes' : 'no'],
      ['Access rules', config.acl_file || 'none'], ['Audit log', config.audit_log || 'none']];
    const facts = [['Up for', this.#uptime], ['State', info.state], ['Version', info.version],
      ['Locks on', config.listen || 'nowhere'], ['Metrics on', config.ops_listen || 'nowhere'],
      ['Threads', count(config.threads)], ...files, ['Last reload', reloadText(info.reload)],
      ...failoverFacts(info.failover)];
    reconcile(this.#facts, facts, ([key]) => key,
      ([key, value]) => el('div', {}, el('dt', {}, key), value === this.#uptime ? value : el('dd')),
      (row, [, value]) => value === this.#uptime || setText(row.lastChild, value));
  }

  changes(changes) {
    const known = new Set(this.#latest.map(keyOf));
    this.#latest.unshift(...changes.slice(-CHANGES_SHOWN).reverse().filter(change => !known.has(keyOf(change))));
    this.#latest.length = Math.min(this.#latest.length, CHANGES_SHOWN);
    setShown(this.#changesNote, this.#latest.length === 0);
    reconcile(this.#changes, this.#latest, keyOf, changeRow, () => {});
    this.#repeater?.soon();
  }

  async #refresh(signal) {
    try {
      const {locks} = await ask(this.#queuesCall, signal);
      const queues = locks.filter(lock => lock.waiters_total > 0);
      reconcile(this.#queues, queues, lock => lock.name, queueRow, updateQueue);
      setText(this.#queuesNote, 'Nobody waits.');
      setShown(this.#queuesNote, queues.length === 0);
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      setText(this.#queuesNote, `Not known: ${failure.message}.`);
      setShown(this.#queuesNote, true);
    }
  }
}

// A stream that was opened again tells the last changes again.
const keyOf = change => `${change.event} ${change.token}`;

function reloadText(reload) {
  if (!reload) {
    return 'none since the start';
  }
  const at = clock(Date.parse(reload.at), Date.now());
  return reload.failed.length > 0 ? `${at} UTC, failed: ${reload.failed.join(', ')}` : `${at} UTC, all well`;
}

function failoverFacts(failover) {
  if (!failover) {
    return [];
  }
  return [['Role', failover.role], ['Active server', failover.active_server || 'not known'],
    ['Term', failover.term === null ? 'none' : String(failover.term)], ['Failovers', count(failover.failovers)],
    ['etcd errors', count(failover.etcd_errors)]];
}

function queueRow(lock) {
  return el('li', {},
    el('a', {href: lockHref(lock.name), title: plainName(lock.name)}, shownName(lock.name)),
    el('span', {class: 'number big'}), el('span', {class: 'sub'}));
}

function updateQueue(row, lock) {
  const [, waiting, owner] = row.children;
  setText(waiting, `${count(lock.waiters_total)} waiting`);
  if (!lock.holder) {
    owner.replaceChildren('no owner');
    return;
  }
  let age = owner.querySelector('.number');
  if (owner.dataset.token !== String(lock.holder.token)) {
    owner.dataset.token = lock.holder.token;
    age = el('span', {class: 'number'});
    owner.replaceChildren('held by ', shownName(whoOf(lock.holder)), ' for ', age);
  }
  setAge(age, lock.holder.held_ms);
}

function changeRow(change) {
  const granted = change.event === 'granted';
  const word = granted ? 'granted' : ENDS[change.reason]?.short ?? change.reason;
  const waited = change.wait_ms > 0 ? `after ${duration(change.wait_ms)}` : 'at once';
  const took = granted ? waited : `held ${duration(change.held_ms)}`;
  const kind = granted ? 'granted' : change.reason;
  return el('li', {class: `change change-${kind}`},
    el('time', {class: 'number', datetime: change.time}, clock(Date.parse(change.time))),
    el('a', {href: lockHref(change.name), title: plainName(change.name)}, shownName(change.name)),
    el('span', {class: `word word-${kind}`}, word),
    el('span', {class: 'sub'}, shownName(whoOf(change)), `, ${took}`));
}
