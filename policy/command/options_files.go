package command

// Tables of programs that work with files, and of those that run others.
const (
	tarOptions = `
@ bundled -c -x -t -r -u -A -d -z -j -J -Z -a -v -k -w -p -s -m -h -O -S -l -W -i -B -n -o -U -L: -b: -N: -V: -f:/
  -C:/ -X:/ -K: --create --extract --get --list --append --update --diff --compare --concatenate --gzip --gunzip
  --ungzip --bzip2 --xz --lzma --zstd --compress --uncompress --auto-compress --verbose --keep-old-files
  --skip-old-files --keep-newer-files --overwrite --overwrite-dir --unlink-first --preserve-permissions
  --same-permissions --same-owner --same-order --preserve-order --touch --dereference --to-stdout --wildcards
  --anchored --ignore-case --wildcards-match-slash --strip-components: --exclude: --exclude-vcs --exclude-vcs-ignores
  --exclude-caches --exclude-backups --exclude-from:/ --directory:/ --file:/ --owner: --group: --mode: --mtime:
  --sort: --format: --null --numeric-owner --totals --checkpoint --acls --xattrs --selinux --sparse --one-file-system
  --recursion --ignore-failed-read --ignore-zeros --block-number --full-time --utc --show-transformed-names
  --quoting-style: --label: --version --help --warning: --level: --delay-directory-restore --hard-dereference
  --clamp-mtime --newer: --after-date: --newer-mtime: --no-auto-compress --force-local --occurrence
  --interactive --verify --suffix: --backup |runs -I: --use-compress-program: -F: --info-script:
  --new-volume-script: --checkpoint-action: --to-command: --rsh-command: --rmt-command: -T: --files-from:
  |leaves --transform: --xform: -P
  --absolute-names --absolute-paths --one-top-level: |writes -g: --listed-incremental: --index-file: --volno-file:
  --remove-files -M --multi-volume --recursive-unlink --delete
`
	findOptions = `
@ single -name: -iname: -path: -ipath: -wholename: -iwholename: -regex: -iregex: -regextype: -type: -xtype: -maxdepth:
  -mindepth: -size: -mtime: -mmin: -atime: -amin: -ctime: -cmin: -perm: -user: -group: -uid: -gid: -links: -inum:
  -samefile: -newer: -newer* -anewer: -cnewer: -printf: -print -print0 -ls -prune -quit -empty -not -o -or -a -and
  -true -false -depth -d -xdev -mount -x -readable -writable -executable -daystart -follow -nouser -nogroup -noleaf
  -ignore_readdir_race -warn -nowarn -lname: -ilname: -used: -fstype: -H -L -P -O* -E -s -X -version -help -exec...
  -execdir... |writes -delete -fprint: -fprint0: -fprintf: -fls: |runs -ok... -okdir... |reads -files0-from: |leaves -f:
`
	sedOptions = `
@ sed -n -E -r -e: -s -u -z -l: -a --quiet --silent --regexp-extended --expression: --separate --unbuffered
  --null-data --posix --sandbox --line-length: --debug --version --help --binary -b --zero-terminated |writes -i?
  --in-place -I? -w: |runs -f: --file: |leaves --follow-symlinks
`
	awkOptions = `
@ awk -F: -v: -e: -c -C -O -P -r -S -s -V -h -W:~e -M -b -k -N -t --field-separator: --assign: --source: --posix
  --traditional --re-interval --characters-as-bytes --non-decimal-data --sandbox --optimize --version --help --csv
  --bignum --use-lc-numeric --lint |runs -f: --file: -i: --include: -l: --load: -E: --exec: -D --debug |writes -o
  --pretty-print -p --profile -d --dump-variables -I
`
	rsyncOptions = `
@ -a -v -z -r -l -p -t -g -o -D -u -n -h -P -c -x -H -S -i -q -R -W -C -m -k -K -L -d -A -X -U -N -E -O -J -I -y -0 -4
  -6 -V -B: --archive --verbose --compress --recursive --links --perms --times --group --owner --devices --specials
  --update --dry-run --human-readable --progress --partial --stats --checksum --delete --delete-before --delete-during
  --delete-delay --delete-after --delete-excluded --exclude: --include: --info: --debug: --size-only --existing
  --ignore-existing --ignore-times --bwlimit: --timeout: --contimeout: --max-size: --min-size: --modify-window:
  --one-file-system --hard-links --sparse --itemize-changes --quiet --relative --whole-file --cvs-exclude
  --prune-empty-dirs --force --max-delete: --inplace --append --append-verify --dirs --copy-links --safe-links
  --munge-links --keep-dirlinks --chmod: --numeric-ids --out-format: --list-only --ignore-errors --from0
  --executability --acls --xattrs --fuzzy --compress-level: --compress-choice: --checksum-choice: --omit-dir-times
  --super --ipv4 --ipv6 --version --help --mkpath --no-motd --implied-dirs --suffix: --backup -b --stop-after: --zc:
  --port: |runs -e: --rsh: --rsync-path: --daemon -M: --remote-option: --config: --early-input: |writes --log-file:
  --write-batch: --only-write-batch: |leaves --backup-dir: --partial-dir: --temp-dir: -T: --compare-dest: --copy-dest:
  --link-dest: --copy-unsafe-links --copy-devices --write-devices --trust-sender --usermap: --groupmap: --chown:
  --remove-source-files --iconv: --sockopts: --address: |reads --files-from: --exclude-from: --include-from:
  --password-file: --read-batch: -f: --filter: -F
`
	zipOptions = `
@ here -r -q -v -j -u -f -d -x: -i: -e -y -g -o -n: -D -X -l -ll -z -9 -8 -7 -6 -5 -4 -3 -2 -1 -0 -@ -R -s: -k -J -A
  -sf -h -L -c -w --recurse-paths --quiet --verbose --junk-paths --update --freshen --delete --exclude: --include:
  --encrypt --symlinks --grow --test-only --version --help |runs -T --test -TT: --unzip-command: |writes -m --move -O:
  --out: --output-file: -b: --temp-path: --logfile-path: -lf: |leaves -FS --filesync
`
	unzipOptions = `
@ here -l -t -v -q -o -n -j -Z -p -c -a -L -u -f -C -x: -z -h -B -V -K -X -M -P: -U -W -O: -I: -1 -2 -s -m -T -d:/
  |leaves -: -^ -D --
`
	squeezeOptions = `
@ -d -c -k -f -t -l -v -q -n -r -z -s -1 -2 -3 -4 -5 -6 -7 -8 -9 -0 -e -V -h -L -a -T: -# --decompress --uncompress
  --stdout --to-stdout --keep --force --test --list --verbose --quiet --name --recursive --best --fast --threads:
  --extreme --version --help --rsyncable --synchronous --small --license --rm --ultra --check: --no-progress --long
  |writes -o: --output-dir-flat: --output-dir-mirror: --patch-from: -S: --suffix: |reads --files: --files0: --filelist:
  -D: --train
`
	sortOptions = `
@ -b -d -f -g -i -h -M -n -R -r -V -c -C -m -s -u -z -k: -t: -S: --numeric-sort --reverse --unique
  --human-numeric-sort --version-sort --general-numeric-sort --month-sort --random-sort --dictionary-order
  --ignore-case --ignore-leading-blanks --ignore-nonprinting --key: --field-separator: --check --merge --stable
  --sort: --parallel: --buffer-size: --zero-terminated --batch-size: --debug --version --help |writes -o: --output:
  |runs --compress-program: |leaves -T: --temporary-directory: |reads --files0-from: --random-source:
`
	teeOptions = `
@ here -a -i -p --append --ignore-interrupts --output-error --version --help
`
	uniqOptions = `
@ words=1 -c -d -D -i -u -z -f: -s: -w: --count --repeated --all-repeated --unique --ignore-case --zero-terminated
  --skip-fields: --skip-chars: --check-chars: --group --version --help
`
	shufOptions = `
@ -e -i: -n: -r -z --echo --input-range: --head-count: --repeat --zero-terminated --version --help |writes -o:
  --output: |reads --random-source:
`
	splitOptions = `
@ here -a: -b: -C: -l: -n: -d -x -e -u -t: -p: -# --suffix-length: --bytes: --line-bytes: --lines: --number:
  --numeric-suffixes --hex-suffixes --additional-suffix: --elide-empty-files --separator: --unbuffered --verbose
  --version --help |runs --filter:
`
	xxdOptions = `
@ words=1 -a -b -c: -C -d -e -E -g: -h -i -l: -n: -o: -p -ps -plain -r -R: -s: -u -v
`
	iconvOptions = `
@ -f: -t: -c -s -l --from-code: --to-code: --list --silent --verbose --version --help |writes -o: --output:
`
	cpioOptions = `
@ -i -o -p -t -v -d -m -u -a -B -c -H: -L -l -n -R: -V -0 -A -C: -S -s -b -f --extract --create --pass-through --list
  --verbose --make-directories --preserve-modification-time --unconditional --null --format: --quiet
  --reset-access-time --dot --no-absolute-filenames --no-preserve-owner --dereference --link --version --help
  |runs --rsh-command: --to-command: |writes -O: --file: -F: -I: |leaves -D: --directory: --absolute-filenames -M: -E:
  --pattern-file: --rename-batch-file: -r --rename
`
	lessOptions = `
@ plus -N -S -R -F -X -i -I -n -e -E -g -G -M -m -s -r -U -w -W -q -Q -u -f -d -a -A -J -K -L -c -C -x: -z: -h: -y:
  -j: -p: -P: -b: -B -# -V -? --LINE-NUMBERS --chop-long-lines --RAW-CONTROL-CHARS --quit-if-one-screen --no-init
  --ignore-case --quiet --version --help --mouse --follow-name --incsearch |runs -k: --lesskey-file: --lesskey-src:
  --lesskey-content: -t: --tag: -T: --tag-file: |writes -o: -O: --log-file: --LOG-FILE:
`
	manOptions = `
@ -k -f -a -w -W -K -d -D -u -c -t -T? -Z -L: -S: -s: -e: -i -I -? -V -R: -r: -m: -E: --apropos --whatis --all
  --where --path --location --where-cat --global-apropos --locale: --sections: --section: --extension: --ignore-case
  --match-case --regex --wildcard --names-only --usage --version --help --encoding: --no-hyphenation
  --no-justification --no-subpages --warnings |runs -P: --pager: -p: --preprocessor: -H? --html -X? --gxditview
  |leaves -M: --manpath: -C: --config-file: -l --local-file
`
	editorOptions = `
@ plus -R -n -p? -o? -O? -d -b -h -m -M -A -H -l -L -N -v -Z -f -X --version --help --clean --noplugin --not-a-term
  --literal --nofork |runs -c: --cmd: -S: -s: -u: -U: -e -E --remote-send: --remote-expr: --servername: --listen:
  --embed --headless --server: --startuptime: --gui-dialog-file: -q: -t: -y -T: -g -x |writes -w: -W: -i: -V -r -D
  --log:
`
	nanoOptions = `
@ -B -E -G -H -I -K -L -M -N -R -S -T: -U -V -W -a -c -d -e -g -h -i -j -k -l -m -n -p -q -r: -t -u -v -w -x -y -z -$
  -0 -+ --version --help --view --restricted --linenumbers --mouse --tabsize: --autoindent --softwrap --nowrap
  |runs -s: --speller: -o: --operatingdir: -f: --rcfile: -F -Y: --syntax: -C: --backupdir: -D -P -Q: -X: -J: -b -O -Z
  -%
`
	emacsOptions = `
@ single plus -nw -Q -q -h -no-window-system -quick -no-init-file -no-site-file -no-splash -version -help -read-only
`
	envOptions = `
@ first=1 -i -0 -v -u: - --ignore-environment --null --debug --unset: --version --help |runs -S: --split-string:
  |leaves -C: --chdir: -P: -a: --argv0:
`
	xargsOptions = `
@ first=1 -0 -r -t -p -x -I: -L: -n: -P: -s: -d: -E: -i? -l? -e? -R: -J: --null --no-run-if-empty --verbose
  --interactive --exit --replace --max-lines --max-args: --max-procs: --max-chars: --delimiter: --eof --show-limits
  --process-slot-var: --version --help -o --open-tty |reads -a: --arg-file:
`
	timeOptions = `
@ first=1 -p -v -V -l -h -q -a -f: --portability --verbose --quiet --format: --append --version --help |writes -o:
  --output:
`
	straceOptions = `
@ first=1 -f -ff -c -C -t -tt -ttt -T -r -v -V -q -qq -i -y -yy -x -xx -Z -z -n -k -h -e: -p: -s: -S: -a: -P: -u: -L
  -b: -I: -E: --version --help |runs -o: --output: -D --daemonize -O: -X: -F: -A -l:
`
	watchOptions = `
@ first=1 -n: -d? -b -c -C -e -g -h -p -q: -r -t -v -w -x --interval: --differences --beep --color --errexit --chgexit
  --precise --no-title --no-wrap --exec --no-rerun --equexit: --version --help |writes -s: --shotsdir:
`
)
