// Colours for code: comments, strings, numbers and the words of a language. What is not known stays plain.
import { h } from './dom.js';

const LONGEST = 50000; // characters that are coloured

const C = { comment: String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`, string: String.raw`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\`(?:\\.|[^\`\\])*\`` };
const HASH = { comment: String.raw`(?<![\w$&{])#[^\n]*`, string: String.raw`"""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])*'` };
const SQL = { comment: String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`, string: String.raw`'(?:''|[^'])*'|"[^"]*"` };

const LANGUAGES = {
  go: { ...C, words: 'break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota' },
  javascript: { ...C, words: 'async await break case catch class const continue default delete do else export extends finally for from function if import in instanceof let new null of return static super switch this throw true false try typeof undefined var void while yield interface type enum implements readonly' },
  rust: { ...C, words: 'as async await break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while' },
  java: { ...C, words: 'abstract auto bool boolean break case catch char class const continue default delete do double else enum extends final finally float for if implements import include int interface long namespace new null nullptr private protected public return short signed sizeof static struct super switch template this throw throws true false try typedef union unsigned using virtual void volatile while' },
  css: { comment: String.raw`\/\*[\s\S]*?(?:\*\/|$)`, string: C.string, words: '' },
  json: { comment: '(?!)', string: C.string, words: 'true false null' },
  python: { ...HASH, words: 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self' },
  bash: { ...HASH, words: 'if then else elif fi for in do done while until case esac function return exit local export set unset cd echo source test shift trap' },
  toml: { ...HASH, words: 'true false' },
  yaml: { ...HASH, words: 'true false null yes no' },
  sql: { ...SQL, words: 'select from where and or not insert into values update set delete create table index view drop alter add primary key references join left right inner outer on group by order having limit offset as distinct union all null is in like between exists case when then else end begin commit rollback with', anycase: true },
};
const SAME = { golang: 'go', js: 'javascript', jsx: 'javascript', ts: 'javascript', tsx: 'javascript', typescript: 'javascript', rs: 'rust', c: 'java', cpp: 'java', 'c++': 'java', 'c#': 'java', cs: 'java', kotlin: 'java', swift: 'java', scala: 'java', jsonc: 'javascript', py: 'python', python3: 'python', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', ini: 'toml', yml: 'yaml', sqlite: 'sql', postgresql: 'sql', dockerfile: 'bash', makefile: 'bash', scss: 'css' };

const known = new Map(); // by name: {pattern, words, anycase}

function languageOf(name) {
  const key = SAME[name] || name;
  const l = Object.hasOwn(LANGUAGES, key) ? LANGUAGES[key] : null;
  if (!l) return null;
  if (!known.has(key)) {
    known.set(key, {
      pattern: new RegExp(`(?<comment>${l.comment})|(?<string>${l.string})|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_$][\\w$]*)`, 'g'),
      words: new Set(l.words.split(' ')), anycase: l.anycase,
    });
  }
  return known.get(key);
}

// highlight returns the nodes of a piece of code in a language. Their text together is the code.
export function highlight(code, name = '') {
  const lower = name.toLowerCase();
  if (code.length > LONGEST) return [code];
  if (lower === 'diff' || lower === 'patch') return diff(code);
  const language = languageOf(lower);
  if (!language) return [code];
  const out = [];
  let at = 0;
  for (const match of code.matchAll(language.pattern)) {
    const [[kind, text]] = Object.entries(match.groups).filter(([, value]) => value !== undefined);
    if (text === '' || (kind === 'word' && !language.words.has(language.anycase ? text.toLowerCase() : text))) continue;
    if (match.index > at) out.push(code.slice(at, match.index));
    out.push(h('span', { class: `code-${kind}` }, text));
    at = match.index + text.length;
  }
  out.push(code.slice(at));
  return out;
}

function diff(code) {
  return code.split(/(?<=\n)/).map((line) => {
    const kind = /^(?:@@|diff |index |\+\+\+|---)/.test(line) ? 'comment' : { '+': 'plus', '-': 'minus' }[line[0]];
    return kind ? h('span', { class: `code-${kind}` }, line) : line;
  });
}
