// Loads the page; and all of it again if a part did not come, because the server had no connection left for it.

const TRIES_MAX = 5;
const PAUSE = 2000;

const tries = Number(sessionStorage.getItem('tries'));
const say = text => {
  document.getElementById('problems-title').textContent = text;
};

try {
  await import('./main.js');
  if (document.styleSheets.length < document.querySelectorAll('link[rel=stylesheet]').length) {
    throw new Error('a style sheet did not come');
  }
  sessionStorage.removeItem('tries');
} catch (failure) {
  console.error(failure);
  if (tries < TRIES_MAX) {
    sessionStorage.setItem('tries', tries + 1);
    say('A part of this page did not arrive. It is loaded again…');
    setTimeout(() => location.reload(), PAUSE);
  } else {
    sessionStorage.removeItem('tries');
    say('A part of this page did not arrive. The server may have no connection left; load the page again later.');
  }
}
