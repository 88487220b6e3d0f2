// What timeline.js reckons: intervals, places and words. How it looks is tested in a browser.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

// By its text: without a package.json beside it, node takes a .js file for a script.
const source = readFileSync(new URL('../../src/web/timeline.js', import.meta.url));
const {clock, describeInterval, describeTimeline, duration, intervalsOf, layoutTimeline, markPath, ownerOf} =
  await import(`data:text/javascript;base64,${source.toString('base64')}`);

const at = seconds => Date.UTC(2026, 2, 1, 9, 0, seconds);
const record = (event, seconds, token, more = {}) => ({
  event, time: new Date(at(seconds)).toISOString(), identity: '', remote_addr: '10.0.0.7:50123', token, ...more,
});
const held = (owner, from, to, end = 'graceful') => ({
  owner, from: at(from), to: to === null ? null : at(to), end: to === null ? null : end, token: from + 1,
});
const timeline = (intervals, from = 0, to = 100, more = {}) => ({from: at(from), to: at(to), intervals, ...more});

test('grants and ends become intervals, and a half alone says what it knows', () => {
  const made = intervalsOf([
    record('released', 5, 1, {held_ms: 3000, reason: 'expired'}),  // its grant is forgotten
    record('granted', 5, 2, {wait_ms: 2000, identity: 'alice'}),
    record('kick_waiter', 6, 0),
    record('released', 9, 2, {held_ms: 4000, reason: 'graceful', identity: 'alice'}),
    record('granted', 9, 3, {wait_ms: 0}),
  ]);
  assert.deepEqual(made.map(each => [each.owner, each.from, each.to, each.end, each.waited, each.token]), [
    ['10.0.0.7', at(2), at(5), 'expired', undefined, 1],
    ['alice', at(5), at(9), 'graceful', 2000, 2],
    ['10.0.0.7', at(9), null, null, 0, 3],
  ]);
});

test('an owner is its identity, or where its connections come from', () => {
  assert.equal(ownerOf({identity: 'spiffe://x/y', remote_addr: '1.2.3.4:5'}), 'spiffe://x/y');
  assert.equal(ownerOf({identity: '', remote_addr: '[2001:db8::1]:50123'}), '[2001:db8::1]');
  assert.equal(ownerOf({identity: '', remote_addr: 'unix:pid=17,uid=1000'}), 'unix:uid=1000');
});

test('bars, gaps and marks are where they belong', () => {
  const {bars, gaps, lanes} = layoutTimeline(
    timeline([held('a', 0, 10), held('b', 20, 30, 'expired'), held('a', 30, null)]), 1000);
  assert.deepEqual(lanes, ['a', 'b']);
  assert.deepEqual(bars.map(bar => [bar.lane, bar.x, bar.width, bar.mark, bar.open]), [
    [1, 0, 100, null, false], [2, 200, 100, 'expired', false], [1, 300, 700, null, true],
  ]);
  assert.deepEqual(gaps.map(gap => [gap.x, gap.width]), [[100, 100]]);
});

test('a free lock has a gap up to now, and before what is known there is none', () => {
  const {gaps, unknown} = layoutTimeline(timeline([held('a', 50, 60)], 0, 100, {knownFrom: at(50)}), 100);
  assert.deepEqual(gaps.map(gap => [gap.x, gap.width]), [[60, 40]]);
  assert.deepEqual(unknown, {x: 0, width: 50});
  assert.deepEqual(layoutTimeline(timeline([]), 100).gaps.map(gap => gap.width), [100]);
});

test('what is cut off or tiny can still be seen', () => {
  const {bars} = layoutTimeline(timeline([held('a', -50, 10), held('a', 99.999, 100), held('a', -50, -40)]), 100);
  assert.equal(bars.length, 2);
  assert.equal(bars[0].cutLeft, true);
  assert.ok(bars.every(bar => bar.width >= 2 && bar.x >= 0 && bar.x + bar.width <= 100));
});

test('the owners of long ago share a lane', () => {
  const many = Array.from({length: 20}, (_, index) => held(`owner ${index}`, index * 5, index * 5 + 4));
  const {lanes, bars} = layoutTimeline(timeline(many), 1000);
  assert.equal(lanes.length, 8);
  assert.equal(lanes[0], 'owner 19');
  assert.equal(lanes[7], 'others');
  assert.equal(bars[0].lane, 8);
});

test('of marks that would cover each other the worst is shown', () => {
  const {bars} = layoutTimeline(
    timeline([held('a', 10, 10.1, 'force'), held('a', 10.2, 10.3, 'expired'), held('a', 10.4, 10.5, 'force')]), 1000);
  assert.deepEqual(bars.map(bar => bar.mark), [null, 'expired', null]);
});

test('ticks have room at every width and scale', () => {
  for (const seconds of [1, 59, 3600, 86_400, 400 * 86_400]) {
    for (const width of [200, 360, 1200]) {
      const {ticks} = layoutTimeline(timeline([], 0, seconds), width);
      assert.ok(ticks.length <= Math.floor(width / 90) + 1, `${seconds} s on ${width}: ${ticks.length}`);
      ticks.forEach((tick, index) => assert.ok(index === 0 || tick.x - ticks[index - 1].x > 55));
    }
  }
});

test('durations and times as text', () => {
  assert.deepEqual(
    [-5, 0, 18.4, 999.4, 1000, 1449, 12_000, 59_999, 60_000, 192_000, 3_600_000, 90_061_000, NaN].map(duration),
    ['0 ms', '0 ms', '18 ms', '999 ms', '1.0 s', '1.4 s', '12 s', '59 s', '1 min', '3 min 12 s', '1 h', '1 d 1 h',
      'unknown']);
  assert.equal(clock(at(7)), '09:00:07');
  assert.equal(clock(at(7), at(7) + 86_400_000), '2026-03-01 09:00:07');
  assert.equal(clock(NaN), 'unknown');
});

test('words for those who do not see it', () => {
  assert.equal(describeInterval({...held('a', 0, 10, 'force'), waited: 1500}, at(0)),
    'a, from 09:00:00, for 10 s, ended by an operator, waited 1.5 s, token 1');
  assert.match(describeInterval(held('a', 0, null)), /still owns it/);
  assert.equal(describeTimeline(timeline([held('a', 0, 10, 'expired'), held('b', 10, null)])),
    '2 ownerships by 2 owners, in 1 min 40 s up to 2026-03-01 09:01:40 UTC, 1 fell silent');
});

test('every end that is no release has a shape of its own', () => {
  assert.equal(new Set(['expired', 'force', 'io_timeout'].map(end => markPath(end, 0, 0))).size, 3);
});
