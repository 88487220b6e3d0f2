// The calls of the admin API that the page makes, each as docs/openapi.yaml has it. What a call is, in words, is shown
// beside what it gave.

const PATIENCE = 10_000;

export class ApiError extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;  // 0: no answer
    this.body = body;
  }
}

const query = parameters => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
};

const target = (path, parameters) => {
  const text = query(parameters);
  return text ? `${path}?${text}` : path;
};

// What to call, before it is called: {method, target}.
export const calls = {
  info: () => ({method: 'GET', target: '/api/info'}),
  locks: parameters => ({method: 'GET', target: target('/api/locks', parameters)}),
  lock: (name, waiters) => ({method: 'GET', target: target('/api/lock', {name, waiters})}),
  history: name => ({method: 'GET', target: target('/api/lock/history', {name})}),
  release: (name, token) => ({method: 'POST', target: target('/api/lock/release', {name, token})}),
  kick: (name, id) => ({method: 'DELETE', target: target('/api/lock/waiter', {name, id})}),
};

// The stream begins with so many changes of before.
export const RECENT = 12;
export const EVENTS = `/api/events?recent=${RECENT}`;

export const callText = call => `${call.method} ${call.target}`;

// What it answered, or an ApiError.
export async function ask(call, signal, within = PATIENCE) {
  const patience = AbortSignal.timeout(within);
  let response;
  let body;
  try {
    response = await fetch(call.target, {
      method: call.method,
      signal: signal ? anyOf(signal, patience) : patience,
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
    });
    body = await response.json();
  } catch (failure) {
    if (signal?.aborted) {
      throw failure;
    }
    throw new ApiError(0, 'the server does not answer');
  }
  if (!response.ok) {
    throw new ApiError(response.status, body.error ?? `status ${response.status}`, body);
  }
  return body;
}

// AbortSignal.any is younger than the browsers that operators have.
function anyOf(...signals) {
  const both = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) {
      both.abort(signal.reason);
    }
    signal.addEventListener('abort', () => both.abort(signal.reason), {once: true});
  }
  return both.signal;
}
