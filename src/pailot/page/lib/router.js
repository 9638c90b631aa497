// @ts-check
// The address is the state of the page: every view can be linked, and going back works.

/** @type {Set<() => void>} */
const watchers = new Set();

/** @param {string} to @param {{replace?: boolean}} [options] */
export function go(to, { replace = false } = {}) {
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  for (const each of watchers) each();
}

/** @param {() => void} watcher */
export function watch(watcher) {
  watchers.add(watcher);
  const back = () => watcher();
  addEventListener("popstate", back);
  return () => {
    watchers.delete(watcher);
    removeEventListener("popstate", back);
  };
}

/** Links of the page are followed without loading it anew. @param {MouseEvent} event */
export function onClick(event) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = /** @type {Element} */ (event.target).closest("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (/^\/(api|page|rest-server)\//.test(link.pathname)) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

/** The query with some values changed; empty ones are left out. @param {Record<string, string | number | null | undefined>} changes */
export function withQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(key);
    else query.set(key, String(value));
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}
