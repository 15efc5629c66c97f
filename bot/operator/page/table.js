// Tables and small words of the panels.
import { h, locale } from './dom.js';

const full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
const short = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const hour = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' });

// when is a moment: the time of today, else the day too.
export function when(iso) {
  if (!iso || iso.startsWith('0001')) return '';
  const d = new Date(iso);
  return d.toDateString() === new Date().toDateString() ? hour.format(d) : short.format(d);
}

export const moment = (iso) => (iso && !iso.startsWith('0001') ? h('time', { datetime: iso, title: full.format(new Date(iso)) }, when(iso)) : '');

export const count = (n) => new Intl.NumberFormat(locale).format(n);

// number is how many there are of something: 1 session, 2 sessions.
export const number = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

// usd shows an amount of dollars as precisely as it needs.
export const usd = (n) => (n === 0 ? '$0' : n >= 1 ? `$${n.toFixed(2)}` : `$${n.toPrecision(2)}`);

// tag is a coloured word for a state.
export const tag = (text, tone = '') => h('span', { class: `tag ${tone}` }, text);

// table makes a table: columns are [title, cell(row), class]. Narrow screens show each row as a card, with the titles in it.
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h('p', { class: 'empty' }, empty);
  return h('div', { class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': caption }, h('table', {}, h('caption', { class: 'hidden' }, caption),
    h('thead', {}, h('tr', {}, columns.map(([title, , kind]) => h('th', { scope: 'col', class: kind || null }, title)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, columns.map(([title, cell, kind]) => h('td', { class: kind || null, 'data-title': title || null }, cell(row))))))));
}

// part is a titled part of a panel.
export const part = (title, n, ...children) => h('section', { class: 'part' }, h('h3', {}, title, n ? h('small', {}, String(n)) : ''), ...children);

// pager turns pages.
export function pager(before, after) {
  if (!before && !after) return '';
  return h('p', { class: 'pager' },
    h('button', { type: 'button', disabled: !before, 'data-focus': 'before', onclick: before || (() => {}) }, '‹ Before'),
    h('button', { type: 'button', disabled: !after, 'data-focus': 'after', onclick: after || (() => {}) }, 'Next ›'));
}

// named shows what somebody is called, with the id as a hint; those who share a name come with their ids in it.
export const named = (name, id) => (name ? h('span', { title: id }, name) : id || '');
