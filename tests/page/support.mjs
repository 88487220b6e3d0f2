// The real server, clients of its locks, and a real browser. All that is started here is ended here.

import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import net from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {it} from 'node:test';

const fromModules = createRequire(join(process.env.PAGE_MODULES, 'package.json'));
const {chromium} = fromModules('playwright-core');
const axeSource = fromModules('axe-core').source;

const BROWSER = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium';
const PATIENCE = 10_000;
const ACQUIRED = 0x12;
const WAITING = 0x11;
const ERROR = 0x13;

export async function waitUntil(condition, what, within = PATIENCE) {
  const end = performance.now() + within;
  for (;;) {
    const found = await condition();
    if (found) {
      return found;
    }
    assert.ok(performance.now() < end, `in vain: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

// --- clients

// One claim on one lock, that beats as long as it is open.
export class Client {
  #socket;
  #input = Buffer.alloc(0);
  #frames = [];
  #beat;
  ended = false;

  static async claim(server, name, lease = 60_000) {
    const bytes = Buffer.isBuffer(name) ? name : Buffer.from(name);
    const made = new Client();
    made.#socket = net.connect(server.port, '127.0.0.1');
    made.#socket.on('data', data => made.#take(data));
    made.#socket.on('error', () => {});
    made.#socket.on('close', () => {
      made.ended = true;
      clearInterval(made.#beat);
    });
    const head = Buffer.alloc(8);
    head.writeUInt8(1, 0);
    head.writeUInt8(1, 1);
    head.writeUInt32BE(lease, 2);
    head.writeUInt16BE(bytes.length, 6);
    made.#socket.write(Buffer.concat([head, bytes]));
    server.clients.push(made);
    made.#beat = setInterval(() => made.#socket.write(Buffer.from([2])), lease / 4);
    await made.next();
    return made;
  }

  #take(data) {
    this.#input = Buffer.concat([this.#input, data]);
    for (;;) {
      const [type] = this.#input;
      const size = {[WAITING]: 1, [ACQUIRED]: 9, [ERROR]: 3 + (this.#input[2] ?? 0)}[type];
      if (size === undefined || this.#input.length < size) {
        return;
      }
      this.#frames.push({
        type, code: this.#input[1], token: type === ACQUIRED ? Number(this.#input.readBigUInt64BE(1)) : 0,
      });
      this.#input = this.#input.subarray(size);
    }
  }

  get owns() {
    return this.#frames.some(each => each.type === ACQUIRED);
  }

  get error() {
    return this.#frames.find(each => each.type === ERROR)?.code;
  }

  get address() {
    return `127.0.0.1:${this.#socket.localPort}`;
  }

  async next() {
    await waitUntil(() => this.#frames.length > 0, 'an answer to the claim');
    return this;
  }

  // From now on it is silent, and its lease passes.
  fallSilent() {
    clearInterval(this.#beat);
  }

  close() {
    clearInterval(this.#beat);
    this.#socket.destroy();
  }
}

// --- the server

export class Server {
  clients = [];
  #log = '';

  static async start(...flags) {
    const made = new Server();
    made.process = spawn(process.env.MONOLOCK_BIN,
      ['-listen', '127.0.0.1:0', '-admin-listen', '127.0.0.1:0', '-threads', '2', '-log-format', 'json', ...flags],
      {stdio: ['ignore', 'ignore', 'pipe'], env: {PATH: process.env.PATH}});
    made.process.stderr.on('data', data => {
      made.#log += data;
    });
    const addressIn = (word, line) => line.msg === word && line.address;
    const find = word => made.#log.split('\n').slice(0, -1).map(line => addressIn(word, JSON.parse(line))).find(Boolean);
    const [lock, admin] = await waitUntil(() => {
      const both = [find('listening'), find('admin listening')];
      return both.every(Boolean) && both;
    }, 'the server listens');
    made.port = Number(lock.split(':').at(-1));
    made.adminPort = Number(admin.split(':').at(-1));
    made.origin = `http://127.0.0.1:${made.adminPort}`;
    return made;
  }

  get log() {
    return this.#log;
  }

  claim(name, lease) {
    return Client.claim(this, name, lease);
  }

  // Who claim one after another.
  async claims(name, count, lease) {
    const made = [];
    for (let index = 0; index < count; ++index) {
      made.push(await this.claim(name, lease));
    }
    return made;
  }

  async api(target, method = 'GET') {
    const response = await fetch(this.origin + target, {method});
    return {status: response.status, body: await response.json()};
  }

  closeClients() {
    this.clients.splice(0).forEach(each => each.close());
  }

  async stop() {
    this.closeClients();
    if (this.process.exitCode === null) {
      const ended = once(this.process, 'exit');
      this.process.kill('SIGCONT');
      this.process.kill('SIGTERM');
      await ended;
    }
    assert.doesNotMatch(this.#log, /Sanitizer|runtime error/);
  }
}

// --- the browser

export const SIZES = {phone: {width: 360, height: 740}, tablet: {width: 820, height: 1100}, desk: {width: 1440, height: 900}};

export class Browser {
  #profile = mkdtempSync(join(tmpdir(), 'monolock-page-'));

  static async start() {
    const made = new Browser();
    made.browser = await chromium.launch({
      executablePath: BROWSER,
      // What a browser says to its maker is of no use here, and there is no network.
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
        '--disable-component-update', '--no-first-run', '--host-resolver-rules=MAP *.example 127.0.0.1'],
      env: {...process.env, HOME: made.#profile, XDG_CONFIG_HOME: made.#profile, XDG_CACHE_HOME: made.#profile},
    });
    return made;
  }

  // A page, all whose errors and warnings are kept in page.complaints; the requests it makes in page.asked.
  // That a lock is gone is an answer like others, but Chromium calls each 404 an error.
  async open(url, options = {}) {
    const context = await this.browser.newContext({viewport: SIZES.desk, ...options});
    const page = await context.newPage();
    page.complaints = [];
    page.asked = [];
    page.on('console', message => {
      const isGoneLock = / 404 /.test(message.text()) && /\/api\/lock\?/.test(message.location().url);
      if (['error', 'warning'].includes(message.type()) && !isGoneLock) {
        page.complaints.push(message.text());
      }
    });
    page.on('pageerror', error => page.complaints.push(String(error)));
    page.on('request', request => page.asked.push(`${request.method()} ${request.url()}`));
    page.setDefaultTimeout(PATIENCE);
    if (url) {
      await page.goto(url);
    }
    return page;
  }

  async stop() {
    await this.browser.close();
    rmSync(this.#profile, {recursive: true, force: true});
  }
}

// A picture for people to look at, in the build folder.
export async function shoot(page, name) {
  const folder = process.env.PAGE_PICTURES;
  mkdirSync(folder, {recursive: true});
  await page.screenshot({path: join(folder, `${name}.png`), fullPage: true});
}

export const hrefOf = name => `/#/lock?name=${encodeURIComponent(name)}`;

// As when another tab is in front.
export const hide = page => page.evaluate(() => {
  Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
});
export const show = page => page.evaluate(() => {
  delete document.visibilityState;
  document.dispatchEvent(new Event('visibilitychange'));
});

// What axe finds, in a line each.
export async function findingsOf(page) {
  await page.evaluate(axeSource);
  const {violations, passes} = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }));
  assert.ok(passes.some(each => each.id === 'color-contrast') && passes.length > 15, 'it has looked');
  return violations.map(each => `${each.id}: ${each.nodes.map(node => `${node.target} ${node.failureSummary}`).join(' | ')}`);
}

// Of every view and a dialog.
export async function checkViews(server, page) {
  await server.claims('checked', 3);
  (await server.claim('lost', 300)).fallSilent();
  await page.goto(`${server.origin}/`);
  await page.locator('#problems.warn').waitFor();
  await page.locator('.queues li').first().waitFor();
  assert.deepEqual(await findingsOf(page), []);
  await page.goto(`${server.origin}/#/locks`);
  await page.locator('.locks tbody tr').first().waitFor();
  assert.deepEqual(await findingsOf(page), []);
  await page.goto(server.origin + hrefOf('checked'));
  await page.locator('.timeline .bar').first().waitFor();
  await page.getByRole('button', {name: 'Release…'}).click();
  assert.deepEqual(await findingsOf(page), []);
  await page.keyboard.press('Escape');
  assert.deepEqual(await findingsOf(page), []);
}

// --- scenarios

export const mode = page => page.locator('#mode').textContent();
export const isLive = page => waitUntil(async () => await mode(page) === 'live', 'it is live');
export const dialog = page => page.getByRole('dialog');
export const acts = page => page.asked.filter(each => /^(POST|DELETE) /.test(each));

// Makes scenario(title, run): with a server of its own, and no complaint of the browser unless it expects some.
export const scenarios = browserOf => (title, run, {complains = false, flags = []} = {}) => {
  it(title, async () => {
    const server = await Server.start(...flags);
    const pages = [];
    const open = async (path = '/', options = {}) => {
      const page = await browserOf().open(server.origin + path, options);
      pages.push(page);
      return page;
    };
    try {
      await run({server, open});
      for (const page of pages) {
        assert.deepEqual(complains ? [] : page.complaints, []);
        assert.deepEqual(page.asked.filter(each => !each.includes(server.origin)), [], 'nothing of elsewhere');
      }
    } finally {
      await Promise.all(pages.map(page => page.context().close()));
      await server.stop();
    }
  });
};
