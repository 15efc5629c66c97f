package command

// Tables of programs that build, test and install.
const (
	makeOptions = `
@ assign -j? -k -s -n -i -B -q -w -t -l? -r -R -S -d -p -h -v -o: -W: -O? -L -m -b --jobs --keep-going --silent
  --quiet --dry-run --just-print --recon --always-make --print-directory --output-sync --trace --debug --question
  --touch --version --help --warn-undefined-variables --ignore-errors --load-average --max-load --no-builtin-rules
  --no-builtin-variables --print-data-base --old-file: --what-if: --check-symlink-times -C:/ --directory:/ |runs -f:
  --file: --makefile: --eval: -E: -I: --include-dir:
`
	npmOptions = `
@ sub --version -v --help -h -s --silent -q -y --yes --json --loglevel: -d --no-color` + npmHarm + `
run, run-script, test, t, start, stop, restart: -s --silent -w: -ws --workspace: --workspaces --include-workspace-root
  --if-present --ignore-scripts --foreground-scripts --loglevel: --json -d --verbose --no-color` + npmHarm + `
exec, x: first=1 -y --yes --no -q --quiet --silent -p: --package: -w: --workspace:` + npmHarm + `
install, i, add, ci, uninstall, remove, rm, un, update, up, outdated, audit, audit fix, ls, list, ll, dedupe, prune,
  rebuild, link, fund, view, info, show, search, ping, root, bin, why, explain, docs, query, version, pack, doctor,
  help, create, init, install-test, it, cit, diff, sbom, whoami, set-script, completion: -D -E -S -P -O -B -f -s -d -l
  -a -y -q -w: -ws --save --save-dev --save-exact --save-prod --save-optional --save-peer --save-bundle --production
  --omit: --include: --legacy-peer-deps --strict-peer-deps --force --ignore-scripts --audit --fund --silent --quiet
  --verbose --loglevel: --json --depth: --dry-run --if-present --workspace: --workspaces --include-workspace-root
  --prefer-offline --prefer-online --prefer-dedupe --offline --audit-level: --yes --progress --only: --dev --parseable
  --long --all --color --package-lock --package-lock-only --bin-links --install-strategy: --scope: --tag:
  --engine-strict --foreground-scripts --git-tag-version --commit-hooks --preid: --access: --searchlimit: --unicode
  --message: -m:` + npmHarm + `
other: -s --silent --json -y --yes --dry-run --loglevel: --workspace: -w:` + npmHarm + `
config, c: sub --json -l --long
config list, config ls, config get, c list, c ls, c get, get: --json -l --long
config other, c other, set: ask may set a program that it runs
edit, explore, login, adduser, publish, token, owner, team, org, hook, profile: ask opens a program or acts for the account
`
	npmHarm = ` |runs --script-shell: --shell: --node-options: -c: --call: --git: --editor: --viewer: --node-gyp: --init-module:
  --browser: --npm-path: |leaves -C: --prefix: -g --global --location: --userconfig: --globalconfig: --registry:
  --cache: --cafile: --proxy: --https-proxy: --noproxy: --local-prefix: --logs-dir: --script-src: `
	npxOptions = `
@ first=1 -y --yes --no --no-install -q --quiet -p: --package: -w: --workspace: --workspaces --version -v --help -h
  --prefer-offline --ignore-existing` + npmHarm + `
`
	yarnOptions = `
@ sub --frozen-lockfile --immutable --immutable-cache --production --prod --silent -s --json --verbose --check-files
  --non-interactive --version -v --help -h --offline --prefer-offline --ignore-scripts --ignore-engines
  --ignore-platform --network-timeout: --no-lockfile --force --flat --no-progress -r --recursive -w --workspace-root
  --filter: -F: --if-present --parallel --stream` + yarnHarm + `
install, i, add, remove, rm, uninstall, un, upgrade, up, update, outdated, list, ls, why, audit, info, import, link,
  unlink, pack, init, dedupe, version, versions, help, licenses, autoclean, check, generate-lock-entry, prune,
  rebuild, fetch, root, bin: -D -E -O -P -T -W -s -r -w -y -A -L --dev --save-dev --exact --optional --peer --tilde
  --caret --latest --frozen-lockfile --immutable --immutable-cache --production --prod --silent --json --verbose
  --check-files --non-interactive --offline --prefer-offline --ignore-scripts --ignore-engines --ignore-platform
  --network-timeout: --no-lockfile --lockfile --lockfile-only --force --depth: --pattern: --recursive --interactive
  --save-exact --save-optional --save-prod --save-peer --workspace --workspace-root --filter: --shamefully-hoist
  --strict-peer-dependencies --reporter: --long --parseable --level: --inline-builds --mode: --mode --yes --patch
  --minor --major --cached --refresh-lockfile --fix-lockfile --hoist --lock --side-effects-cache` + yarnHarm + `
config, set, plugin, global, node, exec, dlx, login, publish, policies, create, env, setup, store, server,
  self-update, patch, patch-commit, deploy, link-workspaces: ask runs programs, or changes what later ones do
run, test, build, start, other: *` + yarnHarm + `
`
	yarnHarm = ` |runs --use-yarnrc: --script-shell: --shell: --node-options: -c: --shell-mode |leaves -C: --dir: --prefix: --cwd:
  --modules-folder: -g --global --cache-folder: --global-folder: --link-folder: --registry: --store-dir:
  --virtual-store-dir: --modules-dir: --lockfile-dir: --config.*: --proxy: --https-proxy: --global-dir:
  --global-bin-dir: `
	goOptions = `
@ single sub -h -help |leaves -C:
build, install, get, list, fix:` + goBuild + `-e -m -u -d -t -f: -deps -test -find -compiled -export -versions -retracted -reuse: -o:/` + goHarm + `
run: first=1` + goBuild + goHarm + `
test:` + goBuild + `-c -i -o:/ -run: -bench: -benchtime: -benchmem -count: -timeout: -short -failfast -parallel: -shuffle: -skip: -list:
  -fuzz: -fuzztime: -fuzzminimizetime: -cpu: -blockprofilerate: -memprofilerate: -mutexprofilefraction:
  -coverprofile:/ -cpuprofile:/ -memprofile:/ -blockprofile:/ -mutexprofile:/ -trace:/ -outputdir:/ -fullpath
  -artifacts` + goHarm + `
vet:` + goBuild + `-c: -V -flags -printf -shadow -composites -copylocks -unusedresult -structtag -tests -atomic -bool -assign -nilfunc
  -unreachable -unsafeptr -diff` + goHarm + `
fmt: -n -x -mod:
generate:` + goBuild + `-run: -skip:` + goHarm + `
clean: -n -x -i -r -cache -testcache -modcache -fuzzcache
env: -json -changed |runs -w -u
version: -m -v -json
doc: -all -c -cmd -short -src -u
mod: sub
mod tidy, mod download, mod graph, mod verify, mod why, mod vendor, mod init: -v -x -e -go: -compat: -json -m -vendor
  -diff -reuse: |writes -o:
mod edit: -json -print -fmt -go: -toolchain: -module: -require: -droprequire: -exclude: -dropexclude: -retract:
  -dropretract: -godebug: -dropgodebug: |leaves -replace: |runs -tool:
work: sub
work sync, work use, work init, work vendor: here -r -v -e -go:
work other, mod other: ask changes which code is built
tool: sub
tool cover: -func: -mode: -var: |writes -o: |runs -html:
tool other: ask runs a tool with options of its own
telemetry, bug, help, other: -
`
	goBuild = ` -v -x -n -a -p: -race -msan -asan -cover -covermode: -coverpkg: -tags: -trimpath -mod: -modcacherw -buildmode:
  -buildvcs -compiler: -installsuffix: -linkshared -json -work -pgo: -ldflags:~-ext -godebug: -gcflags:~= `
	goHarm = ` |runs -exec: -toolexec: -vettool: -gccgoflags: -asmflags: |leaves -C: -modfile: -overlay: -pkgdir: `

	cargoOptions = `
@ sub -v -q -V -h --version --list --help --verbose --quiet --locked --offline --frozen --color:` + cargoHarm + `
run, r: first=1` + cargoBuild + cargoHarm + `
build, b, test, t, check, c, clippy, doc, d, bench, fix, fmt, clean, tree, update, fetch, add, remove, rm, metadata,
  search, init, new, package, version, help, verify-project, generate-lockfile, locate-project, pkgid, audit, deny,
  outdated, nextest, nextest run, llvm-cov, expand, machete, info, vendor, report:` + cargoBuild + cargoHarm + `
install, uninstall:` + cargoBuild + `--version: --force -f` + cargoHarm + `
other: -v -q --release --all --workspace --locked --offline -p: --package:` + cargoHarm + `
config, login, logout, owner, publish, yank: ask acts for the account, or shows how it is set up
`
	cargoBuild = ` here -r -v -q -p: -j: -F: -n -e: -i: -d -V -h --release --all --workspace --all-targets --all-features
  --features: --no-default-features --package: --bin: --lib --test: --example: --bench: --tests --bins --examples
  --benches --verbose --quiet --jobs: --locked --offline --frozen --no-run --no-fail-fast --doc --check
  --message-format: --color: --target:~.json --profile: --exclude: --dev --build --optional --no-optional --rename:
  --edition: --name: --vcs: --list --help --no-deps --document-private-items --fix --allow-dirty --allow-staged
  --allow-no-vcs --keep-going --timings --future-incompat-report --ignore-rust-version --rust-version --depth:
  --invert: --duplicates --prefix: --charset: --format: --format-version: --precise: --recursive --aggressive
  --dry-run --limit: --version: --unit-graph --json --all-crates --workspace-remap `
	cargoHarm = ` |runs --config: -Z: |leaves --manifest-path: -C: --target-dir: --out-dir: --artifact-dir: --path: --root: --git:
  --registry: --index: --lockfile-path: `

	cmakeOptions = `
@ here -S:/ -B:/ -D:~launcher -G: -A: -T: -U: -j? --build:/ --install:/ --parallel --target: -t: --config:
  --component: --clean-first -v --verbose --version --help --preset --list-presets --workflow --fresh -Wno-dev -Wdev
  -Wno-deprecated -LA -LAH -L -N --log-level: --strip -h |runs -P: -E: -C: --toolchain: --debugger-pipe: --open:
  |leaves --prefix: --find-package |writes --graphviz: --trace-redirect: --debugger-dap-log: --profiling-output:
`
	ninjaOptions = `
@ -j: -k: -l: -v -n -h -d: --version --verbose --quiet --help -C:/ |runs -f: -t:
`
	gradleOptions = `
@ -q -i -s -S -a -m -v -x: -P* -h -? --quiet --info --warn --stacktrace --full-stacktrace --daemon --offline
  --parallel --exclude-task: --tests: --console: --build-cache --configuration-cache --continue --dry-run
  --rerun-tasks --rerun --refresh-dependencies --version --help --all --profile --watch-fs --max-workers:
  --warning-mode: --configure-on-demand --status --stop --configuration: --dependency: -d --debug --no-rebuild -u
  --fail-fast --args: -t --continuous |runs -I: --init-script: -D* --system-prop: |leaves -p: --project-dir: -b:
  --build-file: -c: --settings-file: -g: --gradle-user-home: --project-cache-dir: --include-build:
  --gradle-dependency: -M? --write-verification-metadata --write-locks
`
	mvnOptions = `
@ single ~exec: ~exec-maven -q -e -X -B -o -U -N -C -c -V -v -h -T: -P: -pl: -am -amd -rf: -fae -ff -fn -ntp -nsu -npu -quiet
  -errors -debug -batch-mode -offline -update-snapshots -non-recursive -version -help -threads: -activate-profiles:
  -projects: -also-make -also-make-dependents -resume-from: -fail-at-end -fail-fast -fail-never -no-transfer-progress
  -show-version -no-snapshot-updates -DskipTests* -DskipITs* -Dtest* -Dit.test* -Dmaven.test.skip* -DfailIfNoTests*
  -Dsurefire.failIfNoSpecifiedTests* -Dstyle.color* -Dmaven.javadoc.skip* |runs -D* -define: -Dexec* |leaves -f: -file:
  -s: -settings: -gs: -global-settings: -t: -toolchains: -gt: -global-toolchains: -ep -emp -b: -builder: |writes -l:
  -log-file:
`
	gccOptions = `
@ single at here -W* -O* -g* -D* -U* -I* -L* -l* -std* -f* -c -S -E -v -w -pipe -pthread -shared -static* -rdynamic
  -pedantic* -ansi -M -MM -MD -MMD -MP -MG -MF:/ -MT: -MQ: -x: -o:/ -include:/ -isystem* -idirafter* -nostd* -nolibc
  -nodefaultlibs -no-pie -pie -print-* -dumpversion -dumpmachine -dM -C -P -H -Q -s -r -m* -arch: -version -help
  -target* -### -undef -trigraphs -nostartfiles |runs -wrapper: -fplugin* -fpass-plugin* -fuse-ld* -B* -specs* -Wl,*
  -Wa,* -Wp,* -X* -load* -mllvm* -cc1* -no-canonical-prefixes -ccc* -resource-dir* -config* -sysroot* -gcc-toolchain*
  -param* -fmodule* -fprebuilt* |writes -fdump* -dump* -save-temps* -fprofile* -fcallgraph* -fdiagnostics-format*
  -aux-info: -fopt-info* -fsave-optimization-record* -ftime-trace* -fcrash-diagnostics* -foptimization-record* -MJ:
  -serialize-diagnostics: -gsplit-dwarf* -index-store* -fstack-usage -fada-spec* -fmem-report-wpa*
`
	rustcOptions = `
@ at here -O -g -v -V -h --edition: --crate-type: --crate-name: -C:~link --codegen:~link --cfg: --check-cfg: -l: -L:
  --target: --test --explain: --print: -W: -A: -D: -F: --warn: --allow: --deny: --forbid: --cap-lints: --error-format:
  --json: --color: --verbose --version --help -o:/ --out-dir:/ --emit:~= |runs -Z: --sysroot: --extern:
`
	javacOptions = `
@ single at here -d:/ -h:/ -s:/ -cp: -classpath: -class-path: -source: -target: -release: -g* -Xlint* -Werror -nowarn
  -verbose -deprecation -encoding: -parameters -proc:none -sourcepath: -source-path: -version -help -p: -module-path:
  -Xmaxerrs: -Xmaxwarns: -Xdoclint* |runs -processor: -processorpath: -processor-path: -processor-module-path: -J*
  -Xplugin* -A* -bootclasspath: -Xbootclasspath* -agentpath* -system:
`
	javaOptions = `
@ single at first=1 -jar:; -cp: -classpath: -class-path: -p: -module-path: -m:; -Xmx* -Xms* -Xss* -D* -version
  -showversion -ea* -da* -help -h -add-opens: -add-exports: -add-modules: -enable-preview -server -client -verbose*
  -Xshare* -Xint -list-modules -dry-run -source: |runs -javaagent* -agentlib* -agentpath* -XX* -Xrun* -Xbootclasspath*
  -Xdebug -Xlog* -Djava.system.class.loader* -Djdk.internal* -patch-module: -upgrade-module-path: -splash*
`
	pytestOptions = `
@ here -v -q -x -s -l -k: -m: -n: -r? -f -h -V -c:/ --verbose --quiet --exitfirst --maxfail: --lf --last-failed --ff
  --failed-first --nf --new-first --sw --stepwise --stepwise-skip --cov --cov-report:~: --cov-branch --cov-fail-under:
  --cov-append --tb: --durations: --durations-min: --collect-only --co --setup-show --fixtures --markers
  --strict-markers --strict-config --showlocals --capture: --color: --no-header --no-summary --disable-warnings
  --deselect: --ignore: --ignore-glob: --import-mode: --runxfail --cache-show --cache-clear --numprocesses: --dist:
  --timeout: --reruns: --asyncio-mode: --version --help -vv -vvv --benchmark-only --benchmark-skip --random-order
  --snapshot-update --full-trace --doctest-modules |runs -p: --pdb --pdbcls: --trace -o: --override-ini: -W:
  --pythonwarnings: |leaves --rootdir: --confcutdir: --basetemp: --cov-config: --config-file: |writes --junitxml:
  --junit-xml: --log-file: --debug --pastebin: --report-log: --html: --resultlog:
`
	pipOptions = `
@ sub -v -q -V -h --version --help --verbose --quiet --no-color --no-input --isolated --disable-pip-version-check
  --require-virtualenv --no-cache-dir --timeout: --retries:` + pipHarm + `
install, uninstall, list, show, freeze, check, download, wheel, inspect, index, index versions, search, hash, help,
  debug, cache: -U -r:/ -c:/ -e:/ -y -q -v -o -u -l -f --upgrade --requirement:/ --constraint:/ --editable:/ --user
  --yes --quiet --verbose --outdated --uptodate --not-required --format: --local --no-deps --pre --dry-run
  --force-reinstall --ignore-installed --no-cache-dir --no-build-isolation --only-binary: --no-binary: --prefer-binary
  --require-hashes --upgrade-strategy: --disable-pip-version-check --no-input --progress-bar: --no-color --exclude:
  --all --files --no-warn-script-location --break-system-packages --use-pep517 --timeout: --retries: --no-compile
  --report:- --hash: --platform: --python-version: -I` + pipHarm + `
config: sub
config list, config get, config debug: -v
config other, other: ask changes what later installations do
`
	pipHarm = ` |runs --global-option: --config-settings: -C: --install-option: --python: --build-option: |leaves -t: --target: --root:
  --prefix: --src: -i: --index-url: --extra-index-url: -f: --find-links: --proxy: --cert: --client-cert:
  --trusted-host: --cache-dir: -d: --dest: -w: --wheel-dir: --keyring-provider: --log: --no-index `
)
