// A figure and its last two minutes as a line.

import {count, el, setText} from './text.js';

const SVG = 'http://www.w3.org/2000/svg';
const SPAN = 120_000;
const WIDTH = 240;
const HEIGHT = 44;
// Two samples further apart than this have nothing to say of what was between them.
const GAP = 8000;

// A round number that nothing is above.
export function scaleOf(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 2, 5, 10].map(factor => factor * power).find(each => each >= most) ?? most;
}

export class Plot {
  #format;
  #samples = [];  // {at, value}
  #value;
  #note;
  #line;
  #area;
  #scale;
  element;

  // With a word about what it counts; `format` makes text of a number.
  constructor(title, explanation, format) {
    this.#format = format;
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('aria-hidden', 'true');
    this.#area = svg.appendChild(document.createElementNS(SVG, 'path'));
    this.#area.setAttribute('class', 'area');
    this.#line = svg.appendChild(document.createElementNS(SVG, 'path'));
    this.#line.setAttribute('class', 'line');
    this.#value = el('dd', {class: 'value'}, '–');
    this.#note = el('dd', {class: 'note'}, '\u00a0');
    this.#scale = el('span', {class: 'scale', 'aria-hidden': 'true'});
    this.element = el('div', {class: 'tile', title: explanation},
      el('dt', {}, title), this.#value, this.#note, el('dd', {class: 'plot'}, svg, this.#scale));
  }

  // Beside the figure, in small.
  note(text) {
    setText(this.#note, text || '\u00a0');
  }

  push(value, at = performance.now()) {
    this.#samples.push({at, value});
    while (this.#samples[0].at < at - SPAN) {
      this.#samples.shift();
    }
    setText(this.#value, this.#format(value));
    this.#draw(at);
  }

  #draw(now) {
    const most = scaleOf(Math.max(...this.#samples.map(each => each.value)));
    const x = at => WIDTH - (now - at) / SPAN * WIDTH;
    const y = value => HEIGHT - 1 - value / most * (HEIGHT - 3);
    let line = '';
    let area = '';
    let run = [];
    const close = () => {
      if (run.length > 0) {
        const points = run.map(each => `${x(each.at).toFixed(1)} ${y(each.value).toFixed(1)}`).join('L');
        line += `M${points}`;
        area += `M${x(run[0].at).toFixed(1)} ${HEIGHT}L${points}L${x(run.at(-1).at).toFixed(1)} ${HEIGHT}Z`;
      }
      run = [];
    };
    for (const each of this.#samples) {
      if (run.length > 0 && each.at - run.at(-1).at > GAP) {
        close();
      }
      run.push(each);
    }
    close();
    this.#line.setAttribute('d', line);
    this.#area.setAttribute('d', area);
    setText(this.#scale, count(most));
  }
}
