package command

// gitShowing are the options of git commands that show changes.
const gitShowing = ` -p -u -s -w -b -z -i -a -c -m -t -r -W -R -D -E -F -P -g -q -v -n: -U? -S: -G: -L: -M? -C? -B? -l: -# --stat
  --shortstat --numstat --dirstat --name-only --name-status --summary --patch --patch-with-stat --compact-summary
  --oneline --graph --decorate --decorate-refs: --all --branches --tags --remotes --glob: --pretty --format:
  --abbrev-commit --abbrev --date: --relative-date --since: --until: --after: --before: --author: --committer:
  --grep: --all-match --invert-grep --max-count: --skip: --merges --first-parent --reverse --cached --staged --color
  --word-diff --word-diff-regex: --color-words --color-moved --unified: --raw --cc --diff-filter: --find-renames
  --find-copies --follow --renames --check --ignore-all-space --ignore-space-change --ignore-space-at-eol
  --ignore-blank-lines --ignore-cr-at-eol --minimal --patience --histogram --diff-algorithm: --no-ext-diff
  --no-textconv --topo-order --date-order --author-date-order --left-right --left-only --right-only --cherry-pick
  --cherry-mark --cherry --simplify-by-decoration --full-history --boundary --parents --children --merge-base
  --relative --exit-code --quiet --submodule --ignore-submodules --source --full-index --binary --function-context
  --inter-hunk-context: --text --pickaxe-regex --pickaxe-all --perl-regexp --extended-regexp --fixed-strings
  --regexp-ignore-case --walk-reflogs --clear-decorations --notes --show-notes --log-size --no-walk --diff-merges
  --ours --theirs --base --ws-error-highlight: --show-signature --not `

// gitOptions lists, for each git command, the options that are ordinary use of this repository, as meant by a rule such
// as "git *".
const gitOptions = `
@ sub --no-pager -P -p --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs --icase-pathspecs --version
  -v --help -h --no-replace-objects --no-advice |leaves -C: --git-dir: --work-tree: --namespace: --bare --attr-source:
  --super-prefix: |runs -c: --config-env: --exec-path
log, show, diff, whatchanged, diff-tree, diff-index, diff-files, rev-list, reflog, reflog show, stash show,
  range-diff:` + gitShowing + `--count --objects --stdin --root --recurse |runs --ext-diff --textconv |writes -o: --output: |leaves --no-index |reads -O:
status: -s -b -v -z -u? --short --branch --porcelain --long --verbose --untracked-files --ignored --show-stash
  --ahead-behind --renames --find-renames --column --ignore-submodules
shortlog:` + gitShowing + `-e --numbered --summary --email --group:
blame, annotate:` + gitShowing + `-e -f -l -N --porcelain --line-porcelain --show-email --show-name --show-number --incremental --ignore-rev:
  --ignore-revs-file: |runs --textconv
add, stage: -n -v -f -u -A -N -p --dry-run --verbose --force --update --all --intent-to-add --refresh --ignore-errors
  --ignore-missing --renormalize --chmod --sparse --patch |runs -e --edit -i --interactive |reads --pathspec-from-file:
commit: -a -m: -q -v -n -s -e -p -S? -u? -C: -c: --all --message: --quiet --verbose --verify --signoff --amend --edit
  --allow-empty --allow-empty-message --author: --date: --dry-run --short --fixup: --squash: --reset-author
  --reuse-message: --reedit-message: --include --only -i -o --status --gpg-sign --trailer: --cleanup: --porcelain
  --branch --untracked-files |reads -F: --file: -t: --template: --pathspec-from-file:
push: addr here -u -f -n -v -q -d -o: --set-upstream --force --force-with-lease --force-if-includes --tags
  --follow-tags --all --branches --delete --dry-run --prune --verify --atomic --verbose --quiet --porcelain --progress
  --push-option: --signed --thin --mirror --ipv4 --ipv6 -4 -6 --recurse-submodules |runs --receive-pack: --exec:
  |leaves --repo:
pull: addr here -q -v -n -r? -f -a -t -k -p --rebase --ff --ff-only --quiet --verbose --stat --squash --commit --edit
  --autostash --tags --all --prune --depth: --unshallow --allow-unrelated-histories --verify --progress --force
  --append --keep --signoff --dry-run -4 -6 --ipv4 --ipv6 --jobs: -j: --recurse-submodules -X: --strategy-option:
  |runs --upload-pack: -s: --strategy:
fetch: addr here -q -v -n -f -a -t -k -p -P -j: -4 -6 --all --prune --prune-tags --tags --depth: --deepen: --unshallow
  --force --append --quiet --verbose --dry-run --progress --multiple --jobs: --keep --shallow-since:
  --shallow-exclude: --atomic --ipv4 --ipv6 --update-shallow --auto-maintenance --auto-gc --recurse-submodules
  --set-upstream --porcelain --refetch --write-fetch-head --server-option: -o: |runs --upload-pack: -u |leaves --refmap:
  --negotiation-tip:
ls-remote: addr here -h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --sort: --symref
  |runs --upload-pack: --exec: -o: --server-option:
clone: addr here -q -v -n -l -s -b: -o: -j: -4 -6 --branch: --depth: --single-branch --recurse-submodules --recursive
  --bare --mirror --checkout --quiet --verbose --progress --origin: --shallow-since: --shallow-submodules --tags
  --jobs: --filter: --sparse --local --hardlinks --remote-submodules --also-filter-submodules |runs -u: --upload-pack:
  --template: -c: --config: |leaves --reference: --reference-if-able: --separate-git-dir: --bundle-uri: --dissociate
  --shared
checkout: -b: -B: -q -f -t -m -p -d -l -2 -3 --quiet --force --track --guess --detach --ours --theirs --merge
  --orphan: --patch --conflict: --progress --recurse-submodules --overwrite-ignore --ignore-skip-worktree-bits
  --overlay --ignore-other-worktrees |reads --pathspec-from-file:
switch: -c: -C: -q -f -t -m -d --create: --force-create: --quiet --force --track --guess --detach --discard-changes
  --orphan: --merge --conflict: --progress --recurse-submodules --ignore-other-worktrees
restore: -s: -S -W -q -p -m --source: --staged --worktree --quiet --progress --ours --theirs --merge --conflict:
  --patch --overlay --ignore-unmerged --ignore-skip-worktree-bits --recurse-submodules |reads --pathspec-from-file:
merge: -m: -n -q -v -e -S? -X: --message: --commit --edit --ff --ff-only --squash --stat --abort --continue --quit
  --quiet --verbose --verify --log --signoff --strategy-option: --allow-unrelated-histories --autostash --cleanup:
  --into-name: --gpg-sign --progress --rerere-autoupdate --overwrite-ignore --verify-signatures |runs -s: --strategy:
  |reads -F: --file:
rebase: -i -q -v -n -f -p -r? -k -S? -X: -C? --interactive --onto: --continue --abort --skip --quit --edit-todo
  --show-current-patch --autosquash --autostash --rebase-merges --keep-empty --keep-base --root --force-rebase
  --fork-point --verify --quiet --verbose --stat --update-refs --committer-date-is-author-date --reset-author-date
  --ignore-date --ignore-whitespace --signoff --apply --merge -m --empty: --strategy-option: --gpg-sign --whitespace:
  --rerere-autoupdate |runs -x: --exec: -s: --strategy:
cherry-pick, revert: -n -e -x -s -S? -m: -X: --commit --edit --signoff --continue --abort --skip --quit --mainline:
  --ff --allow-empty --allow-empty-message --keep-redundant-commits --strategy-option: --gpg-sign --cleanup:
  --rerere-autoupdate --reference |runs --strategy:
reset: -q -p -N --hard --soft --mixed --merge --keep --quiet --patch --intent-to-add --refresh --recurse-submodules
  |reads --pathspec-from-file:
stash: sub -u -a -k -q -m: -p -S --include-untracked --all --keep-index --quiet --message: --patch --staged
stash push, stash save, stash pop, stash apply, stash drop, stash list, stash clear, stash branch: -u -a -k -q -m: -p
  -S --include-untracked --all --keep-index --quiet --message: --patch --staged --index -n: -# --oneline --stat
  --format: --date: |reads --pathspec-from-file:
branch: -a -r -v -q -d -D -m -M -c -C -f -t? -l -i -u: --all --remotes --list --verbose --quiet --show-current
  --delete --move --copy --force --track --set-upstream-to: --unset-upstream --contains --merged --color --column
  --sort: --points-at: --format: --abbrev --ignore-case --omit-empty --create-reflog --recurse-submodules
  |runs --edit-description
tag: -a -s -l -n? -d -f -v -m: -u: -e -i --annotate --sign --list --delete --force --verify --message: --edit
  --contains --merged --points-at: --sort: --format: --color --column --cleanup: --local-user: --create-reflog
  --ignore-case --omit-empty --trailer: |reads -F: --file:
remote: sub addr here -v --verbose
remote add, remote set-url: addr here -f -t: -m: --tags --fetch --push --add --delete --track: --master:
  |leaves --mirror
remote remove, remote rm, remote rename, remote show, remote prune, remote get-url, remote update, remote set-head,
  remote set-branches: -n -p -a -d -v --all --push --dry-run --prune --auto --delete --add --progress
clean: -n -f -d -x -X -q -e: --dry-run --force --quiet --exclude: |runs -i --interactive
rm, mv: -n -f -r -q -k -v --dry-run --force --cached --quiet --ignore-unmatch --verbose --sparse
  |reads --pathspec-from-file:
init: here -q -b: --quiet --initial-branch: --bare --object-format: --ref-format: |runs --template:
  |leaves --separate-git-dir: --shared
submodule: sub -q --quiet --cached
submodule update, submodule init, submodule status, submodule sync, submodule summary, submodule deinit,
  submodule absorbgitdirs: -i -f -q -N -n: -j: --init --recursive --remote --force --checkout --fetch --quiet --depth: --jobs:
  --single-branch --recommend-shallow --cached --all --files --progress --filter: |runs --rebase --merge
  |leaves --reference:
submodule add: addr here -f -q -b: --force --quiet --branch: --name: --depth: |leaves --reference:
submodule foreach: first=1 --recursive -q --quiet
worktree: sub
worktree list: -v -z --verbose --porcelain --expire:
worktree add, worktree remove, worktree move, worktree prune, worktree lock, worktree unlock, worktree repair: here
  -b: -B: -d -f -q -n -v --force --detach --checkout --quiet --track --guess-remote --orphan --lock --reason:
  --dry-run --verbose --expire: --relative-paths
config: keys addr --get --get-all --get-regexp --get-urlmatch --list -l --name-only --show-origin --show-scope --null -z --local
  --bool --int --bool-or-int --path --type: --default: --add --unset --unset-all --replace-all --rename-section
  --remove-section --includes --get-color --get-colorbool --all --value: --fixed-value --regexp: --url: |leaves -f:
  --file: --global --system --blob: |runs -e --edit
describe: --tags --all --always --long --dirty --broken --abbrev --match: --exclude: --candidates: --exact-match
  --first-parent --contains --debug
rev-parse: -q --abbrev-ref --short --verify --show-toplevel --is-inside-work-tree --is-inside-git-dir
  --is-bare-repository --is-shallow-repository --git-dir --absolute-git-dir --git-common-dir --git-path: --show-prefix
  --show-cdup --symbolic-full-name --symbolic --quiet --all --branches --tags --remotes --default: --revs-only
  --no-revs --flags --no-flags --show-superproject-working-tree --show-object-format --path-format: --not --since:
  --until: --sq
ls-files: -c -d -m -o -i -s -u -k -t -v -z -f -x: --cached --deleted --modified --others --ignored --stage --unmerged
  --killed --exclude: --exclude-standard --full-name --error-unmatch --abbrev --eol --deduplicate --directory --debug
  --recurse-submodules --resolve-undo --format: --sparse --with-tree: --no-empty-directory
ls-tree: -d -r -t -l -z --name-only --name-status --object-only --long --full-name --full-tree --abbrev --format:
cat-file: -t -s -p -e --batch-all-objects --batch --batch-check --batch-command --buffer --unordered
  --allow-unknown-type --follow-symlinks --mailmap --path: |runs --textconv --filters
merge-base, name-rev, show-ref, for-each-ref, symbolic-ref, count-objects, check-ignore, check-ref-format, var,
  show-branch, cherry, whatchanged, verify-commit, verify-tag, fsck, version, help, ls, patch-id, diff-pairs,
  check-attr: -a -r -d -h -q -v -s -z -n -m: --all --octopus --is-ancestor --fork-point --independent --tags --heads
  --head --hash --verify --dereference --quiet --exclude-existing --count: --sort: --format: --points-at: --merged
  --no-merged --contains --human-readable --verbose --non-matching --name-only --refs: --always --short --delete
  --stdin --branch --normalize --full --strict --unreachable --dangling --connectivity-only --progress --raw --stable
  --color --list --remotes --current --no-index
grep: -i -n -r -l -L -c -w -v -h -H -o -p -q -a -I -z -E -G -F -P -W -e: -A: -B: -C: -m: --ignore-case --line-number
  --files-with-matches --name-only --files-without-match --count --word-regexp --invert-match --only-matching --quiet
  --text --extended-regexp --basic-regexp --fixed-strings --perl-regexp --after-context: --before-context: --context:
  --cached --untracked --recurse-submodules --exclude-standard --full-name --heading --break --color --column --and
  --or --not --all-match --show-function --function-context --max-depth: --max-count: --null --threads: --recursive
  |runs -O --open-files-in-pager --textconv --ext-grep |leaves --no-index |reads -f:
archive: -l -v -0 -1 -2 -3 -4 -5 -6 -7 -8 -9 --list --verbose --format: --prefix: --worktree-attributes --mtime:
  --add-virtual-file: |runs --exec: |leaves --remote: --add-file: |writes -o: --output:
format-patch:` + gitShowing + `-k -N --keep-subject --numbered --no-numbered --start-number: --numbered-files --cover-letter --subject-prefix: --rfc
  --signoff --stdout --attach --inline --thread --in-reply-to: --to: --cc: --from --zero-commit --suffix: --signature:
  --base: --reroll-count: -j --cover-from-description: --interdiff: --range-diff: --creation-factor: |runs --ext-diff
  --textconv |writes -o: --output-directory: --output: |reads --signature-file: --description-file:
apply, am: -R -p: -C: -q -v -3 -s -k -i -u --check --stat --numstat --summary --index --cached --3way --reverse
  --reject --whitespace: --ignore-space-change --ignore-whitespace --verbose --quiet --recount --exclude: --include:
  --continue --skip --abort --quit --show-current-patch --signoff --keep --keep-cr --utf8 --inaccurate-eof
  --unidiff-zero --allow-empty --ours --theirs --union --intent-to-add --binary --apply |leaves --unsafe-paths
  --directory: |writes --build-fake-ancestor:
bisect: sub
bisect start, bisect good, bisect bad, bisect new, bisect old, bisect skip, bisect reset, bisect log, bisect terms,
  bisect next: --term-good --term-bad --term-new --term-old --first-parent --no-checkout
bisect run: first=1
notes: sub
notes list, notes show, notes add, notes append, notes remove, notes copy, notes prune: -f -m: -n -v -c: -C: --force
  --message: --stdin --ignore-missing --dry-run --verbose --allow-empty |reads -F: --file:
gc, prune, repack, pack-refs, maintenance, maintenance run: sub -a -d -f -F -l -q -n -v -k -b -A -g --all --aggressive
  --auto --force --quiet --prune --progress --keep-largest-pack --dry-run --verbose --expire: --window: --depth:
  --threads: --task: --cruft
gc other, maintenance other: ask schedules work for later
update-index: -q --refresh --really-refresh --add --remove --chmod --assume-unchanged --no-assume-unchanged
  --skip-worktree --no-skip-worktree --again -g --unmerged --ignore-missing --ignore-submodules --force-remove
  --replace
sparse-checkout: sub
sparse-checkout list, sparse-checkout set, sparse-checkout add, sparse-checkout init, sparse-checkout disable,
  sparse-checkout reapply: --cone --no-cone --sparse-index --skip-checks --stdin
write-tree, read-tree, commit-tree, hash-object, mktree, update-ref, rerere, unpack-file, merge-tree, merge-file,
  replace, stripspace: -d -m -u -p: -w -t: -z -n -r -i --empty --reset --missing --missing-ok --prefix: --stdin
  --write-tree --name-only --messages --delete --list --deref
lfs: sub
lfs pull, lfs fetch, lfs push, lfs status, lfs ls-files, lfs track, lfs untrack, lfs env, lfs version, lfs checkout,
  lfs locks: -a -l -n -s -I: -X: --all --include: --exclude: --dry-run --long --size --json --porcelain
bundle: sub
bundle verify, bundle list-heads: -q --quiet
bundle other: ask writes a file where it is told
hook: ask runs a program of the repository
filter-branch, difftool, mergetool, instaweb, send-email, shell, cvsserver, remote-ext, remote-fd, daemon,
  upload-pack, receive-pack, upload-archive, http-backend, fast-import, fast-export, credential, credential-store,
  credential-cache, imap-send, p4, svn, quiltimport, request-pull, web--browse, merge-index, merge-one-file,
  mergetool--lib, sh-setup, gui, citool, gitk, interpret-trailers, for-each-repo, fetch-pack, send-pack,
  index-pack, unpack-objects, pack-objects, checkout-index, fsmonitor--daemon, archimport, cvsimport,
  cvsexportcommit, mailinfo, mailsplit, prune-packed, get-tar-commit-id, column, diagnose, bugreport, scalar,
  backfill: ask runs programs, serves or writes where its words say
other: ask is no command of git that is known here; it may be an alias
stash other, remote other, submodule other, worktree other, bisect other, notes other, sparse-checkout other,
  lfs other: ask is not known to be harmless
`
