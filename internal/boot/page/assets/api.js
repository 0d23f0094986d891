// The API of the profile: requests, and the stream of events.

const base = "/api/profile";

// Failure is an answer that says no; hint is what to do about it.
export class Failure extends Error {
  constructor(status, error) {
    super(error?.message || `the server answered ${status}`);
    this.status = status;
    this.hint = error?.hint || "";
    this.class = error?.class || "";
    this.detail = error ?? {};
  }
}

// The address that dsh prints leads to one with a key behind the #. It is kept for this server alone, for other tabs and later: the
// cookie goes to every port of this machine, so it opens no data.
const place = "dsh-key";
let own = "";
const given = /^#key=([\w-]+)$/.exec(location.hash);
if (given) {
  own = given[1];
  try { localStorage.setItem(place, own); } catch { /* this tab alone has it */ }
  history.replaceState(null, "", location.pathname);
}

function key() {
  try { return localStorage.getItem(place) || own; } catch { return own; }
}

async function ask(path, { headers, ...options }) {
  let response;
  try {
    response = await fetch(base + path, { cache: "no-store", credentials: "same-origin", headers: { Authorization: `Bearer ${key()}`, ...headers }, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { message: "dsh does not answer", hint: "It may have been stopped: start it again with dsh web" });
  }
  const text = await response.text();
  let body = null;
  try { body = text ? JSON.parse(text) : null; } catch { /* said below */ }
  if (response.status === 401) throw new Failure(401, { message: "this browser is not let in any more", hint: "Open the address that dsh printed when it started" });
  if (!response.ok) throw Object.assign(new Failure(response.status, body?.error), { body });
  return body;
}

export const get = (path, signal) => ask(path, { signal });

export const post = (path, body = {}, signal) => ask(path, {
  method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-Dsh": "1" },
});

// follow reads the stream of events. on has a function for each event, and connected(bool). The browser itself connects anew after a
// break; it gives up where the answer is no stream, and then we try. A page that nobody looks at lets go of its stream, because a
// browser has only six connections to one server for all of its tabs.
export function follow(on) {
  let source = null, wait = 500, timer = 0;
  const close = () => { source?.close(); source = null; };
  const open = () => {
    close();
    const stream = source = new EventSource(`${base}/events?key=${key()}`);
    stream.addEventListener("open", () => { wait = 500; on.connected(true); });
    stream.addEventListener("error", () => {
      if (stream !== source) return;
      on.connected(false);
      if (stream.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 10000);
    });
    for (const [name, handle] of Object.entries(on)) {
      if (name !== "connected") stream.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
  };
  open();
  addEventListener("pagehide", close);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, 10000);
    else if (source?.readyState !== EventSource.OPEN) open();
  });
}
