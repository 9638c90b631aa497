// @ts-check
import { html } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { exactTime } from "../lib/format.js";
import { Trouble, useLoaded } from "../lib/ui.js";
import { language, t } from "../lib/words.js";

/** What is wrong now, as far as it is the caller's business. */
export function Alerts() {
  const alerts = useLoaded((signal) => get("/alerts", { signal }), []);
  if (alerts.error) return html`<${Trouble} error=${alerts.error} retry=${alerts.reload} />`;
  return html`<h1>${t("alerts")}</h1>${alerts.value?.length === 0 && html`<p>${t("noAlerts")}</p>`}
    ${(alerts.value ?? []).map((/** @type {any} */ each) => html`<section class="panel"><strong>${each.labels?.alertname}</strong> <span class="soft">${exactTime(Date.parse(each.startsAt), language())}</span>
      <div>${each.annotations?.summary ?? each.annotations?.description ?? ""}</div></section>`)}`;
}
