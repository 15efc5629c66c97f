// Small tools for building the page. Text only ever becomes text nodes: nothing here parses markup.

// h makes an element: h('button', {class: 'x', onclick: f}, 'text', node, …). null and false children are left out.
export function h(tag, attributes = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, '');
    else el.setAttribute(name, value);
  }
  el.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return el;
}

export const $ = (id) => document.getElementById(id);

// reconcile makes the children of parent those of items, in order. An item is {key, version, make}; the element of a key stays as long as its version does.
export function reconcile(parent, items) {
  const old = new Map();
  for (const el of parent.children) old.set(el.dataset.key, el);
  let focus = null;
  const active = document.activeElement;
  const row = active && active.closest ? active.closest('[data-key]') : null;
  if (row && row.parentNode === parent) {
    focus = { key: row.dataset.key, at: [...parent.children].indexOf(row), index: [...row.querySelectorAll('button, a, [tabindex]')].indexOf(active) };
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    let el = old.get(item.key);
    if (el && el.dataset.version !== item.version) {
      const fresh = item.make();
      fresh.dataset.key = item.key;
      fresh.dataset.version = item.version;
      if (el === at) at = el.nextElementSibling;
      el.replaceWith(fresh);
      if (fresh.nextElementSibling !== at || !at) parent.insertBefore(fresh, at);
      el = fresh;
    } else if (el) {
      if (el === at) at = at.nextElementSibling;
      else parent.insertBefore(el, at);
    } else {
      el = item.make();
      el.dataset.key = item.key;
      el.dataset.version = item.version;
      parent.insertBefore(el, at);
    }
    old.delete(item.key);
  }
  for (const el of old.values()) el.remove();
  if (focus && !parent.contains(document.activeElement)) restore(parent, focus);
}

// restore gives the focus back after its element was replaced. If that is gone for good, what is in its place has it: who uses the keyboard goes on from there.
function restore(parent, focus) {
  const row = [...parent.children].find((el) => el.dataset.key === focus.key);
  if (!row) {
    const near = parent.children[Math.min(focus.at, parent.children.length - 1)];
    const el = near && (near.matches('button, a, [tabindex]') ? near : near.querySelector('button, a, [tabindex]'));
    if (el) el.focus({ preventScroll: true });
    return;
  }
  const inner = [...row.querySelectorAll('button, a, [tabindex]')];
  const el = focus.index < 0 ? row : inner[Math.min(focus.index, inner.length - 1)] || row;
  el.focus({ preventScroll: true });
}

// hide hides an element, or shows it. If it is hidden while the focus is in it, the focus goes to what next returns, instead of to the top of the page.
export function hide(el, hidden, next) {
  const had = hidden && el.contains(document.activeElement);
  el.hidden = hidden;
  const to = had ? next() : null;
  if (to) to.focus({ preventScroll: true });
}

export function toast(text, bad = false) {
  const el = h('p', { class: bad ? 'toast bad' : 'toast' }, text);
  $('toasts').append(el);
  setTimeout(() => el.remove(), 5000);
}

// alertBox shows text until it is confirmed, as Telegram does for show_alert.
export function alertBox(text) {
  $('alert-text').textContent = text;
  const box = $('alert');
  if (!box.open) box.showModal();
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied');
  } catch {
    toast('The browser did not allow copying.', true);
  }
}

// locale is how numbers and days are written: as the reader does, if that is English like the page.
export const locale = navigator.language.startsWith('en') ? navigator.language : 'en-GB';

const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const seconds = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const dayName = new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' });

export const time = (iso) => clock.format(new Date(iso));
export const exact = (iso) => seconds.format(new Date(iso));
export const dayOf = (iso) => new Date(iso).toDateString();

export function day(iso) {
  const d = new Date(iso);
  const today = new Date();
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (d.toDateString() === today.toDateString()) return 'Today';
  if (d.toDateString() === yesterday.toDateString()) return 'Yesterday';
  return dayName.format(d);
}

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}
