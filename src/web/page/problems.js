// What is wrong, as far as the server can tell, the worst first. Counters are looked at over the last minutes: what was
// counted yesterday is no news.

import {duration} from './timeline.js';
import {count, plural} from './text.js';

const WINDOW = 300_000;
const YOUNG = 300_000;

// Remembers /api/info for as long as counters are looked back over.
export class Records {
  #samples = [];  // {at, info}

  add(info, at = performance.now()) {
    const last = this.#samples.at(-1);
    if (last && info.uptime_ms < last.info.uptime_ms) {
      this.#samples = [];  // another process: it counts from zero
    }
    if (this.#samples.length === 0 && info.uptime_ms < WINDOW) {
      this.#samples.push({at: at - info.uptime_ms, info: null});  // all that it has counted is recent
    }
    this.#samples.push({at, info});
    while (this.#samples.length > 2 && this.#samples[1].at < at - WINDOW) {
      this.#samples.shift();
    }
  }

  get info() {
    return this.#samples.at(-1)?.info ?? null;
  }

  // By how much a counter has risen; `of` takes it out of the totals.
  risen(of) {
    const {info} = this.#samples[0];
    return of(this.info.totals) - (info ? of(info.totals) : 0);
  }

  // Since when, in words.
  get span() {
    const span = this.#samples.at(-1).at - this.#samples[0].at;
    return span > WINDOW - 10_000 ? `in the last ${duration(WINDOW)}`
      : this.#samples[0].info ? 'since this page was opened' : 'since the start';
  }
}

// [{level: 'bad' | 'warn' | 'note', title, text}]
export function problemsOf(records, mode, answeredText) {
  const found = [];
  const add = (level, title, text = '') => found.push({level, title, text});
  if (mode === 'lost') {
    add('bad', 'The server does not answer',
      answeredText ? `What stands below is of ${answeredText} and may be wrong by now.` : 'Does the process run?');
  }
  const {info} = records;
  if (info) {
    stateProblems(info, add);
    capacityProblems(info, records, add);
    upkeepProblems(info, records, add);
    clientProblems(records, add);
  }
  const rank = {bad: 0, warn: 1, note: 2};
  return found.sort((left, right) => rank[left.level] - rank[right.level]);
}

function stateProblems(info, add) {
  const {state, failover, delays_grants: delays, uptime_ms: uptime} = info;
  if (state === 'stalled') {
    add('bad', 'A shard has stalled', 'Its locks stand still: no grants, no answers to heartbeats. Restart the process.');
  } else if (state === 'shutting down') {
    add('warn', 'The server is shutting down', 'Owners are told to stop once its shutdown delay is over.');
  } else if (state === 'starting') {
    add('note', 'The server is starting');
  } else if (state === 'standby' && failover?.active_server) {
    add('note', 'Standby: another server is active', failover.active_server);
  } else if (state === 'standby') {
    add('warn', 'Standby: no active server is known', 'Nobody is granted a lock here.');
  }
  if (delays) {
    add('warn', 'Claims only queue yet', 'Grants begin once owners of before have surely stopped.');
  }
  if (failover && failover.last_error && state !== 'serving') {
    add('warn', 'etcd', failover.last_error);
  }
  if (uptime < YOUNG) {
    add('note', 'Started a few minutes ago', 'Claims of before that are gone.');
  }
}

function capacityProblems({sessions, sessions_max: most}, records, add) {
  const share = most > 0 ? sessions / most : 0;
  if (share >= 0.8) {
    add(share >= 0.95 ? 'bad' : 'warn', `${Math.floor(share * 100)} % of the descriptors are taken`,
      `${count(sessions)} of ${count(most)} sessions. New clients wait when all are; raise LimitNOFILE.`);
  }
  const refused = records.risen(totals => totals.accept_errors);
  if (refused > 0) {
    add('bad', 'Connections could not be accepted', `${count(refused)} times ${records.span}.`);
  }
}

function upkeepProblems(info, records, add) {
  if (info.audit_log_refused) {
    add('bad', 'The audit log cannot be written', 'Its events wait in memory, and some are lost if it lasts; the log says why.');
  }
  if (info.totals.audit_lost_events > 0) {
    add('bad', 'The audit log is not complete', `${plural(info.totals.audit_lost_events, 'event is', 'events are')} lost.`);
  }
  if (info.reload && info.reload.failed.length > 0) {
    add('warn', `The last reload failed: ${info.reload.failed.join(', ')}`,
      `At ${info.reload.at}. What was in force before still is; the log says why.`);
  }
}

function clientProblems(records, add) {
  const tell = (level, of, title, text) => {
    const risen = records.risen(of);
    if (risen > 0) {
      add(level, `${title(risen)} ${records.span}`, text);
    }
  };
  tell('warn', totals => totals.ends.expired, n => `${plural(n, 'owner', 'owners')} fell silent`,
    'Their leases passed: a machine, a network or a process stood still.');
  tell('warn', totals => totals.ends.io_timeout, n => `${plural(n, 'owner', 'owners')} did not read replies`,
    'Their connections are stuck.');
  tell('note', totals => totals.ends.force, n => `${plural(n, 'owner was', 'owners were')} ended by an operator`,
    'The audit log has them.');
  tell('note', totals => totals.acl_denials, n => `${plural(n, 'claim was', 'claims were')} denied`,
    'By the access rules.');
  tell('note', totals => totals.tls_handshake_errors, n => `${plural(n, 'TLS handshake', 'TLS handshakes')} failed`,
    'The log names addresses and reasons at level debug.');
  tell('note', totals => totals.client_errors - totals.acl_denials, n => plural(n, 'mistake of a client', 'mistakes of clients'),
    'The log has them at level debug.');
}

