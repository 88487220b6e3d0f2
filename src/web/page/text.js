// Text on the page. What strangers chose (lock names, identities) goes in as text nodes only, and characters that
// could hide or rearrange what stands around them are shown by their numbers.

import {piecesOf} from './names.js';
import {duration} from './timeline.js';

// el('p', {class: 'x', onclick: f}, child, 'text', [more])
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? '' : value);
    }
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined));
  return made;
}

// Only what differs is touched, so that a screen reader hears of changes alone.
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

export function setShown(node, shown) {
  node.hidden = !shown;
}

// In one direction whatever stands around it.
export function shownName(name, attributes = {}) {
  const pieces = piecesOf(name);
  const children = pieces.map(({text, code}) => text ?? el('span', {class: 'code'}, code));
  return el('bdi', {class: 'name', ...attributes}, children);
}

// The identity of a claim, or else its address.
export function whoOf(claim) {
  return claim.identity || claim.remote_addr;
}

const COUNT = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

export function count(number) {
  return COUNT.format(number);
}

// "0", "0.3", "12", "1,200": never wider than it must be.
export function rate(number) {
  return number > 0 && number < 9.95 ? number.toFixed(1) : count(number);
}

export function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// A duration that is mostly a whole number: "10 s".
export function shortly(ms) {
  return duration(ms).replace('.0 s', ' s');
}

// --- ages that tick

const ticking = new Map();  // node -> when its age was zero, on performance.now()'s clock

// The node shows from now on how old something is that was `ms` old at `at`; null: nothing.
export function setAge(node, ms, at = performance.now(), suffix = '') {
  if (ms === null || ms === undefined) {
    ticking.delete(node);
    setText(node, '');
    return;
  }
  ticking.set(node, {zero: at - ms, suffix});
  showAge(node);
}

// Whole seconds: tenths would only flicker.
function ageText(ms) {
  return ms < 1000 ? '0 s' : shortly(ms < 60_000 ? Math.floor(ms / 1000) * 1000 : ms);
}

function showAge(node) {
  const {zero, suffix} = ticking.get(node);
  setText(node, ageText(Math.max(0, performance.now() - zero)) + suffix);
}

export function tickAges() {
  for (const node of ticking.keys()) {
    if (node.isConnected) {
      showAge(node);
    } else {
      ticking.delete(node);
    }
  }
}

// --- the focus

// After what had it is gone: where somebody with a keyboard goes on.
export function findFocus() {
  const active = document.activeElement;
  if (active === null || active === document.body || active.disabled || active.closest('dialog:not([open])')) {
    document.querySelector('main h1')?.focus({preventScroll: true});
  }
}

// --- lists that keep their elements

// Makes the children of `parent` those of `items`, by key: who had the focus keeps it.
export function reconcile(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = before.get(key);
    before.delete(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    if (child === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(child, place);
    }
    update(child, item);
  }
  const held = [...before.values()].some(child => child.contains(document.activeElement));
  before.forEach(child => child.remove());
  if (held) {
    findFocus();
  }
}
