// The operator's page as a person uses it: a real browser, the real server, real clients.

import assert from 'node:assert/strict';
import {once} from 'node:events';
import http from 'node:http';
import {after, before, describe} from 'node:test';

import {
  Browser, SIZES, acts, dialog, hide, hrefOf, isLive, mode, scenarios, show, waitUntil,
} from './support.mjs';

let browser;
before(async () => {
  browser = await Browser.start();
});
after(() => browser.stop());

const scenario = scenarios(() => browser);

describe('the page', {concurrency: 4}, () => {
  scenario('shows what goes on, as it happens', async ({server, open}) => {
    await server.claims('nightly', 3);
    const page = await open();
    await isLive(page);
    const figure = title => page.locator('.tile', {hasText: title}).locator('.value');
    await waitUntil(async () => await figure('Sessions').textContent() === '3', 'three sessions');
    assert.equal(await figure('Waiters').textContent(), '2');
    await page.getByText('Nothing is wrong that the server can see').waitFor();
    const [owner] = server.clients;
    owner.close();
    await page.locator('.changes li', {hasText: 'released'}).first().waitFor();
    await waitUntil(async () => await figure('Waiters').textContent() === '1', 'one waits');
    await page.locator('.queues li', {hasText: '1 waiting'}).waitFor();
    assert.match(await page.locator('.facts').innerText(), /serving/);
    assert.ok(page.asked.every(each => each.startsWith('GET ')));
  });

  scenario('says first what is wrong', async ({server, open}) => {
    const owner = await server.claim('lost', 1000);
    const page = await open();
    await isLive(page);
    owner.fallSilent();
    await page.locator('#problems.warn li.warn', {hasText: '1 owner fell silent'}).waitFor();
    assert.match(await page.title(), /^\(1\) Overview/);
  });

  scenario('releases the owner that it shows, and the next one has the lock', async ({server, open}) => {
    const [owner, heir] = await server.claims('a/b', 3);
    const {body: {holder}} = await server.api('/api/lock?name=a/b');
    const {address} = owner;
    const page = await open(hrefOf('a/b'));
    await page.getByRole('button', {name: 'Release…'}).click();
    const text = await dialog(page).innerText();
    for (const told of [owner.address, heir.address, String(holder.token), 'granted at once', '1 more wait']) {
      assert.ok(text.includes(told), `${told} in ${text}`);
    }
    const call = `POST /api/lock/release?name=a%2Fb&token=${holder.token}`;
    assert.ok(text.includes(call));
    assert.deepEqual(acts(page), [], 'nothing was done yet');
    assert.equal(owner.error, undefined);
    await dialog(page).getByRole('button', {name: 'Release'}).click();
    await dialog(page).getByText(`Done: ${address}`).waitFor();
    await waitUntil(() => owner.error === 0x02 && heir.owns, 'the lock has moved on');
    assert.deepEqual(acts(page), [call.replace(' /', ` ${server.origin}/`)]);
    await dialog(page).getByRole('button', {name: 'Close'}).click();
    await page.locator('.facts', {hasText: heir.address}).waitFor();
    await page.locator('.timeline .mark-force').first().waitFor();
  });

  scenario('does not release an owner that it did not show', async ({server, open}) => {
    const [owner, heir] = await server.claims('moves', 3);
    const page = await open(hrefOf('moves'));
    await page.getByRole('button', {name: 'Release…'}).click();
    owner.close();
    await dialog(page).getByText('The lock has another owner by now').waitFor();
    assert.ok(await dialog(page).getByRole('button', {name: 'Release'}).isDisabled());
    await dialog(page).getByRole('button', {name: 'Cancel'}).click();

    // The same when it had no time to learn of it.
    await page.locator('.facts', {hasText: heir.address}).waitFor();
    await page.getByRole('button', {name: 'Release…'}).click();
    await page.route('**/api/lock?*', () => {});
    heir.close();
    await waitUntil(() => server.clients[2].owns, 'the third one owns it');
    await dialog(page).getByRole('button', {name: 'Release'}).click();
    const answer = dialog(page).getByRole('status');
    await waitUntil(async () => (await answer.textContent()).startsWith('Nothing was done'), 'it is refused');
    assert.ok((await answer.textContent()).includes(server.clients[2].address), 'and says who has it');
    assert.equal(server.clients[2].error, undefined);
  }, {complains: true});

  scenario('kicks one waiter, and the others keep their order', async ({server, open}) => {
    const [, first, second, third] = await server.claims('queue', 4);
    const page = await open(hrefOf('queue'));
    const rows = page.locator('.queue tbody tr');
    await rows.nth(2).waitFor();
    await rows.nth(1).getByRole('button').click();
    assert.ok((await dialog(page).innerText()).includes('2 of 3'));
    await dialog(page).getByRole('button', {name: 'Kick'}).click();
    await waitUntil(() => second.error === 0x02, 'it is gone');
    await dialog(page).getByRole('button', {name: 'Close'}).click();
    await waitUntil(async () => await rows.count() === 2, 'two are left');
    assert.ok((await rows.nth(0).innerText()).includes(first.address));
    assert.ok((await rows.nth(1).innerText()).includes(third.address));
    const focused = await page.evaluate(() => document.activeElement.tagName);
    assert.equal(focused, 'H1', 'the button that had the focus is gone');
    const [act] = acts(page);
    assert.match(act, /^DELETE .*\/api\/lock\/waiter\?name=queue&id=\d+$/);
  });

  scenario('hostile names are only text, and stay in their place', async ({server, open}) => {
    const names = [
      '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>',
      '"><b id=injected>bold</b>&lt;&#x3c;', `'; alert(1); //`, 'javascript:window.hurt=1', '${window.hurt=1}',
      'safe\u202eevil\u202c', '\u2067right\u2069', 'مرحبا', 'a\u0000\u0007\u001b[31mb', 'line\nbreak\r\ttab',
      'zero\u200bwidth\ufeff', ' blank ', `e${'\u0301'.repeat(60)}`, '\u0301start', 'x'.repeat(255),
      '\u{1f512}'.repeat(60), 'a'.repeat(100) + '\u202e'.repeat(51), '.', '..', '%2e', '#/lock?name=other', '%', '?a=b&c',
    ];
    await Promise.all(names.map(name => server.claim(name)));
    const page = await open('/#/locks', {viewport: SIZES.phone});
    const links = page.locator('.locks tbody a');
    await waitUntil(async () => await links.count() === names.length, 'all are listed');
    const shown = await links.evaluateAll(found => found.map(each => ({
      name: new URLSearchParams(new URL(each.href).hash.split('?')[1]).get('name'),
      text: each.textContent, box: each.getBoundingClientRect().toJSON(),
      isPlain: [...each.querySelectorAll('*')].every(part => ['BDI', 'SPAN'].includes(part.tagName)),
    })));
    assert.deepEqual(shown.map(each => each.name).sort(), [...names].sort(), 'each leads to its lock');
    for (const each of shown) {
      assert.ok(each.isPlain, each.name);
      assert.doesNotMatch(each.text, /[\p{Cc}\p{Cf}]/u, 'nothing hidden');
      assert.doesNotMatch(each.text, /\p{M}{3}/u, 'nothing piled up');
      assert.ok(each.box.right <= SIZES.phone.width && each.box.height < 80, `${each.name}: in its place`);
    }
    const noSideways = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    assert.ok(await noSideways());
    for (const name of [...names.filter(each => each.length > 40), names[0]]) {
      await page.evaluate(href => {
        location.href = href;
      }, hrefOf(name));
      await page.getByRole('button', {name: 'Release…'}).waitFor();
      assert.ok(await noSideways(), name);
    }
    await page.getByRole('button', {name: 'Release…'}).click();
    assert.ok((await dialog(page).innerText()).includes(names[0]));
    await dialog(page).getByRole('button', {name: 'Release'}).click();
    await dialog(page).getByText('Done:').waitFor();
    await page.getByText('it does not exist now').waitFor();
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.equal(await page.locator('#injected').count(), 0);
  });

  scenario('pages of other sites get nothing and do nothing', async ({server}) => {
    const owner = await server.claim('guarded');
    const attacker = http.createServer((request, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<!doctype html><title>evil</title><body></body>');
    }).listen(0, '127.0.0.1');
    await once(attacker, 'listening');
    const evil = `http://evil.example:${attacker.address().port}`;
    const page = await browser.open(`${evil}/`);
    try {
      const release = `${server.origin}/api/lock/release?name=guarded`;
      const got = await page.evaluate(async ([origin, act]) => {
        const tried = [];
        const attempt = async (name, make) => {
          try {
            tried.push([name, await make()]);
          } catch (failure) {
            tried.push([name, 'failed']);
          }
        };
        const loaded = node => new Promise(resolve => {
          node.onload = () => resolve('loaded');
          node.onerror = () => resolve('failed');
          setTimeout(() => resolve('nothing'), 8000);
          document.body.append(node);
        });
        const make = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
        await attempt('read', async () => (await fetch(`${origin}/api/locks`)).text());
        await attempt('post', async () => (await fetch(act, {method: 'POST', mode: 'no-cors'})).type);
        await attempt('post of a form', async () => (await fetch(act, {
          method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: 'a=b',
        })).type);
        await attempt('beacon', async () => String(navigator.sendBeacon(act, 'x')));
        await attempt('script', () => loaded(make('script', {src: `${origin}/page/main.js`, type: 'module'})));
        await attempt('picture', () => loaded(make('img', {src: `${origin}/page/icon.svg`})));
        await attempt('events', () => new Promise(resolve => {
          const source = new EventSource(`${origin}/api/events`);
          source.onmessage = () => resolve('heard');
          source.addEventListener('activity', () => resolve('heard'));
          source.onerror = () => resolve('failed');
        }));
        await attempt('frame', async () => {
          const frame = make('iframe', {src: `${origin}/`});
          document.body.append(frame);
          // The first document of a frame is empty and ours; what takes its place is not.
          for (let left = 400; frame.contentDocument !== null && left > 0; --left) {
            await new Promise(resolve => setTimeout(resolve, 20));
          }
          return frame.contentDocument === null ? 'sealed' : 'open';
        });
        const form = make('form', {method: 'POST', action: act, target: 'sink'});
        document.body.append(make('iframe', {name: 'sink'}), form);
        form.submit();
        await new Promise(resolve => setTimeout(resolve, 300));
        return Object.fromEntries(tried);
      }, [server.origin, release]);
      assert.equal(got.read, 'failed');
      assert.equal(got.script, 'failed');
      assert.equal(got.picture, 'failed');
      assert.equal(got.events, 'failed');
      assert.equal(got.frame, 'sealed');
      for (const frame of page.frames().slice(1)) {
        assert.ok(!await frame.locator('#problems').count().catch(() => 0), 'the page is in no frame');
      }
      // A name that leads here, for which this would be the same origin.
      const rebound = await page.goto(`http://rebound.example:${server.adminPort}/`);
      assert.equal(rebound.status(), 403);
      const link = await page.goto(`${evil}/`).then(async () => {
        await page.evaluate(origin => {
          const anchor = Object.assign(document.createElement('a'), {href: `${origin}/`, textContent: 'go', id: 'go'});
          document.body.append(anchor);
        }, server.origin);
        const [answer] = await Promise.all([page.waitForResponse(`${server.origin}/`), page.click('#go')]);
        return answer;
      });
      assert.equal(link.status(), 403);
      assert.ok(owner.owns && owner.error === undefined && !owner.ended);
      assert.equal((await server.api('/api/lock?name=guarded')).body.holder.remote_addr, owner.address);
    } finally {
      await page.context().close();
      attacker.closeAllConnections();
      attacker.close();
    }
  });

  scenario('a hidden tab asks for nothing', async ({server, open}) => {
    await server.claim('seen');
    await Promise.all(['/', '/#/locks', hrefOf('seen')].map(async path => {
      const page = await open(path);
      await isLive(page);
      await hide(page);
      assert.equal(await mode(page), 'paused');
      // What was on its way may be told yet.
      await waitUntil(async () => (await server.api('/api/info')).status === 200, 'the server answers');
      const asked = page.asked.length;
      await page.waitForTimeout(2500);  // longer than between two refreshes
      assert.equal(page.asked.length, asked, page.asked.slice(asked).join());
      await show(page);
      await isLive(page);
      assert.ok(page.asked.length > asked);
    }));
  });

  scenario('polls where there is no stream, and finds back to it', async ({server, open}) => {
    await server.claim('one');
    const page = await open();
    await isLive(page);
    // Eight others: the oldest stream makes room, and is this one.
    const others = [];
    for (let index = 0; index < 8; ++index) {
      others.push(await waitUntil(async () => {
        const asked = http.get(`${server.origin}/api/events`);
        const [answer] = await once(asked, 'response');
        answer.on('error', () => {}).resume();
        asked.on('error', () => {});
        return answer.statusCode === 200 && asked;
      }, 'a stream'));
    }
    await waitUntil(async () => await mode(page) === 'polling every 2 s', 'it polls');
    await server.claims('one', 2);
    const figure = page.locator('.tile', {hasText: 'Waiters'}).locator('.value');
    await waitUntil(async () => await figure.textContent() === '2', 'the figures go on');
    assert.equal(await page.locator('#problems.bad').count(), 0);
    others.forEach(each => each.destroy());
    await hide(page);
    await show(page);
    await isLive(page);
  });

  scenario('a part that did not arrive is fetched again', async ({server, open}) => {
    const page = await open('/page/icon.svg');
    let refused = 0;
    await page.route('**/page/plot.js', route => refused++ === 0 ? route.abort() : route.continue());
    await page.goto(`${server.origin}/`);
    await page.getByText('A part of this page did not arrive').waitFor();
    await isLive(page);
    assert.equal(refused, 2);
  }, {complains: true});

  scenario('an audit log that cannot be written is what is wrong', async ({server, open}) => {
    await server.claim('one');
    const page = await open();
    await page.locator('#problems.bad li', {hasText: 'The audit log cannot be written'}).waitFor();
  }, {flags: ['-audit-log', '/dev/full']});

  scenario('many pages of one browser leave each other connections', async ({server, open}) => {
    await server.claim('one');
    const pages = [await open()];
    while (pages.length < 8) {
      const page = await pages[0].context().newPage();
      await page.goto(`${server.origin}/`);
      pages.push(page);
    }
    const modes = () => Promise.all(pages.map(mode));
    const ofMode = (all, word) => all.filter(each => each === word).length;
    await waitUntil(async () => {
      const all = await modes();
      return ofMode(all, 'live') === 4 && ofMode(all, 'polling every 2 s') === 4;
    }, 'four are live');
    const [live, polling] = await Promise.all(['live', 'polling every 2 s'].map(async word => pages[(await modes()).indexOf(word)]));
    await (live === pages[0] ? hide(live) : live.close());
    await hide(polling);
    await show(polling);
    await isLive(polling);
  });

  scenario('says so when claims only queue, and offers nothing that cannot be', async ({server, open}) => {
    await server.claim('waits');
    const page = await open('/');
    await page.locator('#problems li', {hasText: 'Claims only queue yet'}).waitFor();
    await page.goto(`${server.origin}${hrefOf('waits')}`);
    await page.getByText('grants are withheld for now').waitFor();
    assert.equal(await page.getByRole('button', {name: 'Release…'}).count(), 0);
    await page.goto(`${server.origin}/#/lock`);
    await page.getByText('Not known').first().waitFor();
    assert.equal(await page.getByRole('button', {name: 'Release…'}).count(), 0);
    await page.goto(`${server.origin}/#/locks?sort=toString`);
    await page.locator('.summary', {hasText: '1–1 of 1'}).waitFor();
  }, {flags: ['-grant-delay', '1h'], complains: true});

  scenario('filters, sorts and turns pages by the server', async ({server, open}) => {
    const names = Array.from({length: 70}, (_, index) => `job-${String(index).padStart(2, '0')}`);
    await Promise.all(names.map(name => server.claim(name)));
    await server.claims('job-33', 4);
    await server.claims('job-44', 2);
    const page = await open('/#/locks');
    const summary = text => page.locator('.summary', {hasText: text}).waitFor();
    const first = () => page.locator('.locks tbody a').first().textContent();
    await summary('1–50 of 70');
    assert.equal(await page.locator('.locks tbody tr').count(), 50);
    await page.getByRole('button', {name: 'Next'}).click();
    await summary('51–70 of 70');
    assert.equal(await first(), 'job-50');
    assert.ok(await page.getByRole('button', {name: 'Next'}).isDisabled());
    await page.getByLabel('Sort').selectOption('Longest queue first');
    await summary('1–50 of 70');
    await waitUntil(async () => await first() === 'job-33', 'the longest queue');
    assert.equal(await page.locator('.locks tbody a').nth(1).textContent(), 'job-44');
    await page.getByLabel('Name').fill('job-*4');
    await summary('1–7 of 7');
    assert.equal(await first(), 'job-44');
    assert.match(page.url(), /#\/locks\?match=job-\*4&sort=waiters$/);
    await page.reload();
    await summary('1–7 of 7');
    assert.equal(await page.getByLabel('Name').inputValue(), 'job-*4');
    await page.getByLabel('Name').fill('nothing');
    await summary('No lock with such a name');
  });

  scenario('needs no mouse', async ({server, open}) => {
    await server.claim('other');
    const [owner, heir] = await server.claims('keyed', 2);
    const page = await open();
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
    const tabTo = text => waitUntil(async () => {
      await page.keyboard.press('Tab');
      return await focused() === text;
    }, `the tabulator reaches ${text}`);
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'To the content');
    await tabTo('Locks');
    await page.keyboard.press('Enter');
    await page.locator('.locks tbody a').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('key*');
    await page.locator('.summary', {hasText: '1–1 of 1'}).waitFor();
    await tabTo('keyed');
    await page.keyboard.press('Enter');
    await page.locator('h1', {hasText: 'keyed'}).waitFor();
    await page.locator('.timeline .bar').first().waitFor();
    await tabTo('Release…');
    await page.keyboard.press('Enter');
    assert.equal(await focused(), 'Cancel', 'the harmless one first');
    await page.keyboard.press('Escape');
    assert.equal(await focused(), 'Release…', 'back where it was');
    await page.keyboard.press('Enter');
    await tabTo('Release');
    await page.keyboard.press('Enter');
    await waitUntil(() => heir.owns && owner.error === 0x02, 'it is released');
    await waitUntil(async () => await focused() === 'Close', 'and can be closed');
    await page.keyboard.press('Enter');
    await page.locator('.timeline .bar').nth(1).waitFor();
    await waitUntil(async () => {
      await page.keyboard.press('Tab');
      return page.evaluate(() => document.activeElement.classList.contains('bar'));
    }, 'the timeline');
    const told = () => page.locator('.timeline-line').textContent();
    const last = await told();
    await page.keyboard.press('ArrowLeft');
    assert.notEqual(await told(), last);
    assert.match(await told(), /ended by an operator/);
    await page.keyboard.press('End');
    assert.match(await told(), /still owns it/);
  });
});
