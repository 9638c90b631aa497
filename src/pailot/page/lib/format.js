// @ts-check
// Numbers, times and amounts as people read them. Pure functions, tested without a browser.

/** @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** A span for an axis: `0:30`, `12:05`, `1:02:00`. @param {number} ms */
export function span(ms) {
  const seconds = Math.round(ms / 1000), two = (/** @type {number} */ each) => String(each).padStart(2, "0");
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${two(minutes % 60)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** @param {number} bytes */
export function bytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = bytes, unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${size >= 10 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** @param {number} mb */
export const memory = (mb) => (mb >= 1024 ? `${+(mb / 1024).toFixed(1)} GB` : `${mb} MB`);

/** @param {{cpus: number, memoryMB: number, gpus: number}} asked */
export function amounts({ cpus, memoryMB, gpus }) {
  const parts = [`${+cpus.toFixed(2)} CPU`, memory(memoryMB)];
  if (gpus) parts.push(`${gpus} GPU`);
  return parts.join(" · ");
}

/** @param {number | null | undefined} moment @param {string} [language] */
export function exactTime(moment, language) {
  if (!moment) return "";
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(moment);
}

/** @param {number} count */
export const count = (count) => new Intl.NumberFormat("en-US").format(count);

/**
 * The address to go to after a log-in, if it is one of this page.
 * @param {string | null} next @param {string} origin
 */
export function safeNext(next, origin) {
  if (!next || !/^\/(?![/\\])/.test(next)) return "/";
  try {
    const url = new URL(next, origin);
    return url.origin === origin ? url.pathname + url.search : "/";
  } catch {
    return "/";
  }
}

/** A free name beside another: `job` → `job-2`, `job-2` → `job-3`. @param {string} name */
export function nextName(name) {
  const found = /^(.*)-(\d{1,6})$/.exec(name);
  return found ? `${found[1]}-${Number(found[2]) + 1}` : `${name}-2`;
}
