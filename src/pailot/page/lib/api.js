// @ts-check
// The server's API for the page: requests with the page secret, and streams that resume.

const SECRET = "pailot-page";
const BASE = "/api/v2";
const SLOTS = 4; // browsers open six connections to an origin; more than four streams would leave none for requests
const POLL_MS = 3000;
const LONGEST_PAUSE_MS = 10000;

/** What went wrong with a request, in the server's words. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {any} [body] */
  constructor(status, code, message, body) {
    super(message);
    this.status = status;
    this.code = code;
    this.body = body;
  }
}

/** Tells the page that its session is over, or that the line to the server broke or came back. */
export const news = new EventTarget();

/** @returns {string} */
export const pageSecret = () => localStorage.getItem(SECRET) ?? "";

/** @param {string} secret */
export function keepSecret(secret) {
  if (secret) localStorage.setItem(SECRET, secret);
  else localStorage.removeItem(SECRET);
}

/** @param {string} job */
export const jobPath = (job) => `/jobs/${encodeURIComponent(job)}`;

/**
 * @param {string} method
 * @param {string} path
 * @param {{json?: any, text?: string, headers?: Record<string, string>, signal?: AbortSignal, quiet?: boolean}} [options]
 * @returns {Promise<Response>}
 */
export async function send(method, path, { json, text, headers = {}, signal, quiet } = {}) {
  /** @type {Record<string, string>} */
  const all = { "X-Pailot-Page": pageSecret(), ...headers };
  let body;
  if (json !== undefined) {
    all["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  } else if (text !== undefined) {
    all["Content-Type"] = "text/yaml";
    body = text;
  }
  let response;
  try {
    response = await fetch(BASE + path, { method, headers: all, body, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "Unreachable", "The server cannot be reached.");
  }
  if (response.ok) return response;
  const said = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(said);
  } catch {
    answer = null;
  }
  if (response.status === 401 && !quiet) news.dispatchEvent(new Event("session-over"));
  throw new ApiError(response.status, answer?.code ?? "", answer?.message ?? (said || response.statusText), answer);
}

/** @param {string} path @param {{signal?: AbortSignal, quiet?: boolean}} [options] */
export const get = async (path, options) => (await send("GET", path, options)).json();

/** @param {string} path @param {any} [json] */
export const post = async (path, json = {}) => (await send("POST", path, { json })).json();

/** @param {string} path @param {any} [json] */
export const put = async (path, json = {}) => (await send("PUT", path, { json })).json();

/** @param {string} path @param {any} [json] */
export const remove = async (path, json) => (await send("DELETE", path, { json })).json();

/**
 * Splits a stream of server-sent events. The id of an event counts when the whole event has come.
 * @param {(event: {kind: string, id: string, data: any}) => void} tell
 */
export function eventReader(tell) {
  let rest = "", kind = "", id = "", data = /** @type {string[]} */ ([]);
  return (/** @type {string} */ text) => {
    rest += text;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (data.length) tell({ kind: kind || "message", id, data: JSON.parse(data.join("\n")) });
        kind = "";
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      else if (line.startsWith("event:")) kind = line.slice(6).trim();
      else if (line.startsWith("id:")) id = line.slice(3).trim();
    }
  };
}

/**
 * Follows a stream until `signal` says to stop or `tell` returns true. Where no slot is free, `poll` is called now and then.
 * @param {string} path
 * @param {(event: {kind: string, id: string, data: any}) => (boolean | void)} tell
 * @param {{signal: AbortSignal, poll?: () => void, from?: string}} options
 */
export async function follow(path, tell, { signal, poll, from = "" }) {
  let last = from, pause = 500, over = false;
  const once = async () => {
    const headers = /** @type {Record<string, string>} */ (last ? { "Last-Event-ID": last } : {});
    const response = await send("GET", path, { headers, signal });
    news.dispatchEvent(new CustomEvent("line", { detail: true }));
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    const read = eventReader((event) => {
      if (over) return;
      if (event.id) last = event.id;
      over = tell(event) === true;
    });
    while (!over) {
      const { done, value } = await reader.read();
      if (done) break;
      pause = 500;
      read(decoder.decode(value, { stream: true }));
    }
    if (over) await reader.cancel();
  };
  while (!signal.aborted && !over) {
    const ran = await inSlot(async () => {
      try {
        await once();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          over = true;
          if (error.status !== 401) throw error;
        }
        news.dispatchEvent(new CustomEvent("line", { detail: false }));
      }
    });
    if (signal.aborted || over) return;
    if (!ran) poll?.();
    await sleep(ran ? pause : POLL_MS, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** @param {() => Promise<void>} work */
async function inSlot(work) {
  if (!navigator.locks) {
    await work();
    return true;
  }
  for (let slot = 0; slot < SLOTS; slot++) {
    const ran = await navigator.locks.request(`pailot-stream-${slot}`, { ifAvailable: true }, async (lock) => {
      if (lock) await work();
      return Boolean(lock);
    });
    if (ran) return true;
  }
  return false;
}

/** @param {number} ms @param {AbortSignal} signal */
export const sleep = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
