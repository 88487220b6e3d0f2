// Ending a claim: what will happen is said before it does, and the one call that does it is shown.

import {ApiError, ask, callText} from './api.js';
import {el, findFocus, setShown, setText, shownName, whoOf} from './text.js';

const box = () => document.getElementById('confirm');

// One at a time. `what` has: title, facts [[word, node or text]], effects [text or node], call, verb, stillSo(lock): a
// sentence if the lock is not what it was when this was opened, told(answer): a sentence about what was done.
export class Confirmation {
  static #open = null;
  #what;
  #warning = el('p', {class: 'warning', role: 'alert', hidden: true});
  #answer = el('p', {class: 'answer', role: 'status'});
  #act;
  #cancel;

  constructor(what) {
    this.#what = what;
  }

  // The lock as it is now, for whoever hesitates.
  static look(lock) {
    Confirmation.#open?.#compare(lock);
  }

  static close() {
    if (box().open) {
      box().close();
    }
  }

  show() {
    const {title, facts, effects, call, verb} = this.#what;
    this.#act = el('button', {type: 'button', class: 'danger', onclick: () => this.#run()}, verb);
    this.#cancel = el('button', {type: 'button', autofocus: true, onclick: () => box().close()}, 'Cancel');
    box().replaceChildren(
      el('h2', {id: 'confirm-title'}, title),
      el('dl', {class: 'facts'}, facts.map(([word, value]) => el('div', {}, el('dt', {}, word), el('dd', {}, value)))),
      el('h3', {}, 'What will happen'),
      el('ul', {class: 'effects'}, effects.map(each => el('li', {}, each))),
      el('p', {class: 'call'}, callText(call)),
      this.#warning, this.#answer,
      el('div', {class: 'buttons'}, this.#cancel, this.#act));
    Confirmation.#open = this;
    box().addEventListener('close', () => {
      Confirmation.#open = null;
      findFocus();  // the button that opened it may be gone
    }, {once: true});
    box().oncancel = event => {
      if (this.#cancel.disabled) {
        event.preventDefault();  // what came of it must be seen
      }
    };
    box().showModal();
    box().scrollTop = 0;  // the button that has the focus is at its end
  }

  #compare(lock) {
    const change = this.#act.hidden ? null : this.#what.stillSo(lock);
    if (change) {
      setText(this.#warning, change);
      setShown(this.#warning, true);
      this.#act.disabled = true;
    }
  }

  async #run() {
    this.#act.disabled = true;
    this.#cancel.disabled = true;
    setText(this.#answer, 'Asked…');
    let told;
    try {
      told = this.#what.told(await ask(this.#what.call));
    } catch (failure) {
      if (!(failure instanceof ApiError)) {
        throw failure;
      }
      told = refusalText(failure);
    }
    this.#answer.replaceChildren(...[told].flat());
    setShown(this.#act, false);
    setText(this.#cancel, 'Close');
    this.#cancel.disabled = false;
    this.#cancel.focus();
    this.#what.after?.();
  }
}

function refusalText(failure) {
  if (failure.status === 0) {
    return 'No answer. It may have been done or not: look at the lock.';
  }
  const holder = failure.body?.holder;
  const now = holder ? [' The owner is now ', shownName(whoOf(holder)), `, token ${holder.token}.`] : [];
  return [`Nothing was done: ${failure.message}.`, ...now];
}
