// The menu of a message: what one can do with it.
import { $, h } from './dom.js';

let origin = ''; // the message that it is about, which may be drawn again meanwhile

export function menu() {
  const box = $('menu');
  box.addEventListener('keydown', keys);
  box.addEventListener('click', (e) => { if (e.target.closest('button')) close(); });
  document.addEventListener('pointerdown', (e) => { if (!box.hidden && !box.contains(e.target)) close(false); });
  for (const event of ['wheel', 'touchmove']) document.addEventListener(event, (e) => { if (!box.hidden && !box.contains(e.target)) close(false); }, { passive: true });
  addEventListener('resize', () => { if (!box.hidden) close(false); });
}

// openMenu shows the menu at a place of the window: groups of {text, sign, act, danger}, and emoji to react with, of which chosen is one's own.
export function openMenu(row, place, reactions, chosen, react, entries) {
  const box = $('menu');
  origin = row.dataset.all;
  const emoji = reactions.length ? h('div', { class: 'menu-emoji', role: 'group', 'aria-label': 'React' }, reactions.map((sign) => h('button', {
    type: 'button', role: 'menuitemcheckbox', 'aria-checked': String(sign === chosen), tabindex: '-1', 'data-emoji': sign, 'aria-label': sign === chosen ? `Take ${sign} back` : `React with ${sign}`,
    onclick: () => react(sign === chosen ? '' : sign),
  }, sign))) : null;
  box.replaceChildren(...[emoji, ...entries.map((e) => h('button', { type: 'button', role: 'menuitem', tabindex: '-1', class: e.danger ? 'danger' : null, 'data-menu': e.text.toLowerCase(), onclick: e.act },
    h('span', { class: 'menu-sign', 'aria-hidden': 'true' }, e.sign), e.text))].filter(Boolean));
  box.hidden = false;
  const size = box.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(place.x, innerWidth - size.width - 8))}px`;
  box.style.top = `${Math.max(8, Math.min(place.y, innerHeight - size.height - 8))}px`;
  (box.querySelector('[role="menuitem"]') || box.querySelector('button')).focus({ preventScroll: true });
}

// close hides the menu; the focus goes back to the message, unless what was chosen has taken it.
function close(back = true) {
  const box = $('menu');
  const inside = box.contains(document.activeElement);
  box.hidden = true;
  const row = back && inside ? document.querySelector(`li.message[data-all="${origin}"]`) : null;
  if (row) row.focus({ preventScroll: true });
}

function keys(e) {
  const all = [...$('menu').querySelectorAll('button')];
  const at = all.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[e.key];
  if (e.key === 'Escape' || e.key === 'Tab') {
    e.preventDefault();
    e.stopPropagation();
    close();
  } else if (to !== undefined) {
    e.preventDefault();
    all[(to + all.length) % all.length].focus({ preventScroll: true });
  }
}
