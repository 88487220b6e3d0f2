// What takes its time: every view at every size as a picture, a server that does not answer, and very many locks.

import assert from 'node:assert/strict';
import {once} from 'node:events';
import http from 'node:http';
import {after, before, describe} from 'node:test';

import {
  Browser, SIZES, checkViews, dialog, hrefOf, isLive, mode, scenarios, shoot, waitUntil,
} from './support.mjs';

const MANY = 100_000;
const REAL = 12_000;

let browser;
before(async () => {
  browser = await Browser.start();
});
after(() => browser.stop());

const scenario = scenarios(() => browser);

// Something of everything that can be seen.
async function busy(server) {
  for (const name of ['billing/run', 'compaction/shard-7', 'deploy/web', 'import/customers', 'report-2026-03', 'a\u202eb ']) {
    await server.claim(name);
  }
  const lost = await server.claim('nightly/import', 1000);
  const queue = await server.claims('nightly/import', 8, 20_000);
  lost.fallSilent();
  await waitUntil(() => queue[0].owns, 'the next one owns it');
  await new Promise(resolve => setTimeout(resolve, 700));
  await server.api('/api/lock/release?name=nightly%2Fimport', 'POST');
  await waitUntil(() => queue[1].owns, 'the next one owns it');
  await new Promise(resolve => setTimeout(resolve, 500));
  queue[1].close();
  await waitUntil(() => queue[2].owns, 'the next one owns it');
  await server.claims('compaction/shard-7', 3);
}

const fits = page => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

describe('the page, at length', () => {
  scenario('looks well at every size, light and dark', async ({server, open}) => {
    await busy(server);
    for (const [size, viewport] of Object.entries(SIZES)) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await open('/', {viewport, colorScheme});
        const picture = name => shoot(page, `${name}-${size}-${colorScheme}`);
        await isLive(page);
        await page.locator('.queues li').first().waitFor();
        await page.waitForTimeout(3000);  // so that the plots have a line
        assert.ok(await fits(page));
        await picture('overview');
        await page.goto(`${server.origin}/#/locks?sort=waiters`);
        await page.locator('.locks tbody tr').nth(6).waitFor();
        assert.ok(await fits(page));
        await picture('locks');
        await page.goto(server.origin + hrefOf('nightly/import'));
        await page.locator('.timeline .bar').first().focus();
        assert.ok(await fits(page));
        await picture('lock');
        await page.getByRole('button', {name: 'Release…'}).click();
        await picture('confirm');
        await page.context().close();
      }
    }
  });

  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      scenario(`has nothing that a checker of accessibility finds, ${colorScheme}, as a ${size}`, async ({server, open}) => {
        await checkViews(server, await open('/', {viewport, colorScheme}));
      });
    }
  }

  scenario('does not jump while locks change hands', async ({server, open}) => {
    const queue = await server.claims('busy', 60);
    const page = await open();
    await isLive(page);
    await page.locator('.queues li').first().waitFor();
    await page.waitForTimeout(1500);
    await page.evaluate(() => {
      window.jumps = 0;
      new PerformanceObserver(list => {
        for (const each of list.getEntries()) {
          window.jumps += each.value;
        }
      }).observe({type: 'layout-shift'});
    });
    for (const each of queue.slice(0, 50)) {
      each.close();
      await page.waitForTimeout(100);
    }
    // A list that grows at its top moves what is in it; nothing else may move.
    assert.ok(await page.evaluate(() => window.jumps) < 0.1, `${await page.evaluate(() => window.jumps)}`);
    const before = await page.locator('.facts').boundingBox();
    await server.claims('other', 30);
    await page.waitForTimeout(3500);
    assert.deepEqual(await page.locator('.facts').boundingBox(), before);
  });

  scenario('says that the server does not answer, and that it does again', async ({server, open}) => {
    await server.claim('one');
    const page = await open();
    await isLive(page);
    server.process.kill('SIGSTOP');
    await page.locator('#problems.bad li.bad', {hasText: 'The server does not answer'}).waitFor({timeout: 30_000});
    assert.equal(await mode(page), 'no answer');
    await shoot(page, 'no-answer');
    server.process.kill('SIGCONT');
    await waitUntil(async () => await mode(page) === 'live', 'it is live again', 30_000);
    await waitUntil(async () => await page.locator('#problems li.bad').count() === 0, 'nothing is wrong');
  }, {complains: true});

  scenario('an answer that is lost is not taken for a refusal', async ({server, open}) => {
    const owner = await server.claim('doubt');
    const page = await open(hrefOf('doubt'));
    await page.getByRole('button', {name: 'Release…'}).click();
    await page.route('**/api/lock/release?*', async route => {
      await route.fetch();  // it arrives, and the answer does not
      await route.abort();
    });
    await dialog(page).getByRole('button', {name: 'Release'}).click();
    await dialog(page).getByText('It may have been done or not').waitFor();
    assert.equal(owner.error, 0x02);
  }, {complains: true});

  scenario(`stays quick with ${REAL} real locks`, async ({server, open}) => {
    for (let done = 0; done < REAL; done += 200) {
      await Promise.all(Array.from({length: 200}, (_, index) => server.claim(`many/${done + index}`, 600_000)));
    }
    await server.claims('many/77', 3, 600_000);
    const page = await open('/#/locks?sort=waiters');
    await page.locator('.summary', {hasText: `of ${REAL.toLocaleString('en')}`}).waitFor();
    await waitUntil(async () => await page.locator('.locks a').first().textContent() === 'many/77', 'the longest queue');
    const begun = performance.now();
    await page.getByLabel('Name').fill('many/*99');
    await page.locator('.summary', {hasText: 'of 120'}).waitFor();
    console.log(`    a filter over ${REAL} locks was answered and shown in ${Math.round(performance.now() - begun)} ms`);
  });

  // More than this machine has descriptors for: the listing is made up, all else is the server's.
  scenario(`does not choke on ${MANY} locks`, async ({server, open}) => {
    const asked = [];
    const front = http.createServer((request, response) => {
      const url = new URL(request.url, 'http://front');
      if (url.pathname !== '/api/locks') {
        const passed = http.request(server.origin + request.url, {method: request.method}, answer => {
          response.writeHead(answer.statusCode, answer.headers);
          answer.pipe(response);
        });
        passed.on('error', () => response.destroy());
        response.on('close', () => passed.destroy());
        passed.end();
        return;
      }
      asked.push(performance.now());
      const from = Number(url.searchParams.get('from') ?? 0);
      const limit = Number(url.searchParams.get('limit'));
      const locks = Array.from({length: Math.min(limit, MANY - from)}, (_, index) => ({
        name: `made-up/${from + index}`, waiters: [], waiters_total: 0,
        holder: {
          id: from + index + 1, identity: '', remote_addr: '10.0.0.1:5', since: '2026-03-01T09:30:00.000Z', held_ms: 1000,
          silent_ms: 10, lease_ms: 10_000, token: from + index + 1,
        },
      }));
      // As long as it takes a server to look at so many.
      setTimeout(() => {
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify({locks, total: MANY}));
      }, 500);
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    const page = await browser.open(`http://127.0.0.1:${front.address().port}/#/locks`);
    try {
      await page.locator('.summary', {hasText: '1–50 of 100,000'}).waitFor();
      assert.equal(await page.locator('.locks tbody tr').count(), 50);
      await page.evaluate(() => {
        location.hash = '#/locks?from=99950';
      });
      await page.locator('.summary', {hasText: '99,951–100,000 of 100,000'}).waitFor();
      assert.equal(await page.locator('.locks tbody tr').count(), 50);
      const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
      assert.ok(heap < 30_000_000, `${heap} bytes`);
      // It rests ten times as long as an answer took.
      asked.length = 0;
      await waitUntil(() => asked.length >= 2, 'two refreshes', 20_000);
      assert.ok(asked[1] - asked[0] > 4500, `${asked[1] - asked[0]} ms`);
      assert.deepEqual(page.complaints, []);
    } finally {
      await page.context().close();
      front.closeAllConnections();
      front.close();
    }
  });
});
