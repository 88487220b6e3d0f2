// Names as people may see them: what strangers chose cannot hide, turn round or pile up, and no two look alike because
// of what is not seen. A module without imports, for the operator's page and for the audit report.

// Control and format characters (direction marks among them), separators, what is not assigned or private, blanks
// that are no space, marks with nothing to stand on, and more than two marks in a row.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs}/u;
const MARK = /\p{M}/u;

// Pieces of a name: {text} as it is, {code} what is shown instead of a character.
export function piecesOf(name) {
  const pieces = [];
  const points = [...name];
  let marks = Infinity;
  points.forEach((point, index) => {
    const isMark = MARK.test(point);
    marks = isMark ? marks + 1 : 0;
    // What is written out could otherwise be written by hand.
    const isLikeOurs = point === '␣' || (point === '\\' && points[index + 1] === 'u' && points[index + 2] === '{');
    const atEdge = point === ' ' && (index === 0 || index === points.length - 1 || points[index - 1] === ' ');
    if (HIDDEN.test(point) || atEdge || isLikeOurs || (isMark && marks > 2)) {
      marks = isMark ? marks : Infinity;
      pieces.push({code: atEdge ? '␣' : `\\u{${point.codePointAt(0).toString(16)}}`});
    } else if (pieces.at(-1)?.text !== undefined) {
      pieces.at(-1).text += point;
    } else {
      pieces.push({text: point});
    }
  });
  return pieces;
}

// The same as a string, for titles and labels.
export function plainName(name) {
  return piecesOf(name).map(({text, code}) => text ?? code).join('');
}
