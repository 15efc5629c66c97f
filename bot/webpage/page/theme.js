// The button that chooses the colours: those of the system, light or dark.
import { $ } from './dom.js';

export function theme() {
  const modes = ['system', 'light', 'dark'];
  const signs = { system: '◐', light: '☀', dark: '☾' };
  const words = { system: 'as the system has them', light: 'light', dark: 'dark' };
  const set = (mode) => {
    if (mode === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = mode;
    localStorage.setItem('theme', mode);
    $('theme').textContent = signs[mode];
    $('theme').setAttribute('aria-label', `Colours: ${words[mode]}`);
    $('theme').title = `Colours: ${words[mode]}`;
  };
  const now = () => (modes.includes(localStorage.getItem('theme')) ? localStorage.getItem('theme') : 'system');
  $('theme').addEventListener('click', () => set(modes[(modes.indexOf(now()) + 1) % modes.length]));
  set(now());
}
