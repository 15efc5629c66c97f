package command

// Tables of programs that access other machines, containers and databases, and of interpreters.
const (
	sshOptions = `
@ first=2 -v -q -4 -6 -T -t -C -n -N -a -x -V -p: -l: -i: -b: -c: -m: -B: -Q: -k -K -A |runs -o: -F: -S: -O: -I:
  |leaves -W: -L: -R: -D: -w: -J: -g -X -Y -M -f |writes -E: -y -G -s
`
	scpOptions = `
@ -r -p -q -v -C -B -3 -4 -6 -O -T -A -R -P: -l: -i: -c: -X: -s |runs -S: -D: -o: -F: |leaves -J:
`
	sftpOptions = `
@ -r -p -q -v -C -a -f -A -N -4 -6 -P: -l: -B: -R: -i: -c: -X: |runs -S: -D: -o: -F: -s: -b: |leaves -J:
`
	curlOptions = `
@ addr -s -S -f -L -I -i -v -k -G -g -N -# -0 -1 -2 -3 -4 -6 -a -B -l -p -q -R -V -h -j -X: -H:@ -d:@ -A: -e: -m:
  -u: -r: -w:@ -y: -Y: -z:@ -o:- -D:- -F:@ --silent --show-error --fail --fail-with-body --fail-early --location
  --head --include --verbose --insecure --get --globoff --buffer --progress-bar --progress-meter --request: --header:@
  --data:@ --data-raw: --data-ascii:@ --data-binary:@ --data-urlencode:@ --json:@ --form:@ --form-string:
  --user-agent: --referer: --max-time: --connect-timeout: --user: --range: --write-out:@ --retry: --retry-delay:
  --retry-max-time: --retry-all-errors --retry-connrefused --compressed --compressed-ssh --url:~file --http1.0
  --http1.1 --http2 --http2-prior-knowledge --http3 --ipv4 --ipv6 --max-redirs: --max-filesize: --limit-rate:
  --speed-limit: --speed-time: --tlsv1 --tlsv1.2 --tlsv1.3 --tls-max: --sslv3 --ssl --ssl-reqd --cacert:/ --resolve:
  --parallel --parallel-max: --path-as-is --post301 --post302 --post303 --tcp-nodelay --styled-output --version --help
  --output:- --dump-header:- --location-trusted --oauth2-bearer: --basic --digest --anyauth --expect100-timeout:
  --keepalive-time: --raw --tr-encoding --url-query:@ --disable --next -: --remote-time --request-target:
  |writes -O -J --remote-name --remote-name-all --remote-header-name -c: --cookie-jar: --trace: --trace-ascii:
  --stderr: --libcurl: --etag-save: --create-dirs --output-dir: --hsts: --alt-svc: --skip-existing --ssl-sessions:
  --dump-ca-embed |reads -K: --config: -T: --upload-file: -b: --cookie: --netrc --netrc-file: --netrc-optional
  --etag-compare: -E: --cert: --key: --pubkey: --proxy-cert: --proxy-key: --capath: --crlfile: --egd-file:
  --random-file: |leaves -x: --proxy: --preproxy: --socks4: --socks4a: --socks5: --socks5-hostname: --proxy1.0:
  --connect-to: --unix-socket: --abstract-unix-socket: --interface: --dns-servers: --doh-url: -U: --proxy-user: -C:
  -t: -Q: --quote: -P: --ftp-port: --mail-from: --mail-rcpt: |runs --engine: --telnet-option:
`
	wgetOptions = `
@ addr -q -v -n -c -N -S -d? -r -k -K -p -E -H -L -m -x -b? -F -4 -6 -V -h -l: -A: -R: -D: -t: -T: -w: -Q: -U: -I: -X:
  -O:- --quiet --verbose --continue --timestamping --clobber --server-response --recursive --level: --no-parent
  --convert-links --page-requisites --adjust-extension --span-hosts --mirror --accept: --reject: --domains: --tries:
  --timeout: --wait: --waitretry: --random-wait --limit-rate: --quota: --spider --check-certificate --show-progress
  --progress: --user-agent: --header: --referer: --method: --body-data: --post-data: --no-cache --no-cookies
  --inet4-only --inet6-only --max-redirect: --content-on-error --compression: --restrict-file-names: --version --help
  --retry-connrefused --dns-timeout: --connect-timeout: --read-timeout: --https-only --no-directories
  --no-host-directories --cut-dirs: --output-document:- --no-verbose --hsts --iri --if-modified-since --backups
  |runs --use-askpass: -e: --execute: --config: |writes -o: --output-file: -a: --append-output: --save-cookies:
  --rejected-log: --warc-file: --warc-dedup: --hsts-file: --content-disposition --save-headers --save-session-cookies
  --delete-after --unlink |leaves -P: --directory-prefix: -B: --base: --bind-address: --warc-tempdir: |reads -i:
  --input-file: --post-file: --body-file: --load-cookies: --certificate: --private-key: --ca-certificate:
  --ca-directory: --crl-file: --pinnedpubkey: --input-metalink: --user: --password:
`
	containerOptions = `
@ sub -v --version --help -h -D --debug |leaves -H: --host: -c: --context: --config: --url: --connection: --root:
  --runroot: --remote --tls* --tlscacert: --tlscert: --tlskey: -l: --log-level: |runs --runtime: --hooks-dir: --conmon:
ps, images, image, image ls, image prune, image inspect, image history, image rm, image pull, image push, image tag,
  logs, inspect, stats, top, version, info, history, port, diff, events, search, start, stop, restart, kill, pause,
  unpause, wait, rm, rmi, rename, tag, pull, push, attach, network, network ls, network inspect, network create,
  network rm, network prune, network connect, network disconnect, volume, volume ls, volume inspect, volume rm,
  volume prune, system, system df, system prune, system info, container, container ls, container ps, container list,
  container inspect, container logs, container stats, container stop, container start, container restart,
  container rm, container prune, container top, container port, builder, builder prune, buildx, buildx ls, buildx inspect,
  buildx du, buildx version, context, context ls, context show, context inspect, manifest, manifest inspect,
  service ls, service ps, service logs, node ls, stack ls, stack ps, pod, pod ps, healthcheck, help: sub -a -q -f: -n: -s -t:
  -l -v --all --quiet --filter: --format: --no-trunc --size --latest --last: -f --follow --tail: --since: --until:
  --timestamps --details --no-stream --force --volumes --time: --signal: --type: --digests --tree --limit: --no-prune
  --platform: --all-tags --disable-content-trust --rm-volumes -i --interactive --verbose --sig-proxy --detach-keys:
  --human --driver: --subnet: --label: --internal --attachable --time: --cidfile-none |leaves --gateway: --ip:
run, create, container run, container create: first=1 -d -i -t -p: -P -q -m: -h: -w: -u: -e: -l: -a: --rm --name:
  --env: --label: --network: --net: --restart: --detach --interactive --tty --publish: --publish-all --hostname:
  --init --platform: --pull: --quiet --memory: --memory-swap: --cpus: --cpu-shares: --cpuset-cpus: --workdir: --user:
  --tmpfs: --read-only --entrypoint: --link: --expose: --shm-size: --stop-timeout: --stop-signal: --log-driver:
  --log-opt: --health-cmd: --health-interval: --health-retries: --health-timeout: --no-healthcheck --sig-proxy
  --network-alias: --domainname: --cap-drop: --pids-limit: --ulimit: --oom-kill-disable --attach: --annotation:
  |leaves -v: --volume: --mount: --privileged --pid: --ipc: --uts: --userns: --cgroupns: --device* --cap-add:
  --security-opt: --volumes-from: --volume-driver: --cgroup-parent: --gpus: --add-host: --dns* --ip* --mac-address:
  --group-add: --sysctl: --blkio* --rootfs --secret: --oom-score-adj: --isolation: --use-api-socket |runs --runtime:
  --init-path: |reads --env-file: --label-file: |writes --cidfile: --pidfile: --conmon-pidfile:
exec, container exec: first=1 -d -i -t -e: -u: -w: --detach --interactive --tty --env: --user: --workdir:
  --detach-keys: |leaves --privileged |reads --env-file:
build, image build, buildx build, builder build: here -t: -f:/ -q -D --tag: --file:/ --build-arg: --cache --pull
  --target: --platform: --quiet --progress: --label: --rm --force-rm --load --push --squash --compress --memory: -m:
  --shm-size: --check --no-cache-filter: --layers --format: --debug --iidfile:- --metadata-file:-
  |leaves --build-context: --secret: --ssh: --add-host: --network: --allow: --builder: --cache-from: --cache-to:
  --cgroup-parent: --isolation: --security-opt: -v: --volume: --attest: --sbom: --provenance: --annotation: --cap-add:
  --device: |runs --runtime: |writes -o: --output:
compose: sub -p: --project-name: --profile: --ansi: --progress: --parallel: --dry-run --verbose -v --version
  --compatibility --all-resources |leaves -f: --file: --project-directory: --env-file: -H: --host: -c: --context:
compose up, compose down, compose ps, compose logs, compose build, compose pull, compose push, compose start,
  compose stop, compose restart, compose rm, compose config, compose images, compose top, compose ls, compose kill,
  compose pause, compose unpause, compose port, compose events, compose version, compose create, compose wait, compose watch,
  compose scale, compose stats, compose volumes:` + composeUp + `
compose exec, compose run: first=1 -d -T -t -i -e: -u: -w: -p: -P -q --rm --no-deps --build --detach --env: --user:
  --workdir: --index: --interactive --tty --name: --service-ports --use-aliases --quiet-pull --remove-orphans
  --entrypoint: --label: -l: --publish: --pull: |leaves -v: --volume: --privileged --cap-add: --cap-drop:
  |reads --env-from-file:
cp, container cp: here -a -L -q --archive --follow-link --quiet
save, export, image save, container export: |writes -o: --output:
load, image load: |reads -i: --input:
login, logout, swarm, plugin, secret, config, trust, import, update, commit, checkpoint, service, stack, node,
  machine, unshare, play, kube, generate, mount, unmount, system reset, system connection, image import,
  image load, image build, image scp, compose other, buildx other, network other, volume other, context other,
  system other, container other, image other, manifest other, builder other, pod other, other: ask is not known to be harmless
`
	composeUp = ` -d -f -t: -q -a -n: -s: -V -v -y --detach --build --force-recreate --no-deps --no-build --no-start --no-recreate
  --remove-orphans --volumes --rmi: --timeout: --timestamps --follow --tail: --since: --until: --no-color
  --no-log-prefix --quiet --quiet-pull --services --all --format: --filter: --status: --wait --wait-timeout: --scale:
  --abort-on-container-exit --exit-code-from: --pull: --no-cache --parallel: --progress: --build-arg: --force --stop
  --ignore-pull-failures --include-deps --profiles --hash: --images --resolve-image-digests --no-interpolate --dry-run
  --attach: --no-attach: --renew-anon-volumes --always-recreate-deps --memory: --push --index: --protocol: --json
  --short --no-trunc --no-stream --menu --with-dependencies --orphans --signal: |writes -o: --output: `
	composeOptions = `
@ sub -p: --project-name: --profile: --ansi: --progress: --parallel: --dry-run --verbose -v --version --compatibility
  |leaves -f: --file: --project-directory: --env-file: -H: --host: -c: --context:
up, down, ps, logs, build, pull, push, start, stop, restart, rm, config, images, top, ls, kill, pause, unpause, port,
  events, version, create, scale, stats, help:` + composeUp + `
exec, run: first=1 -d -T -t -i -e: -u: -w: -p: -q --rm --no-deps --build --detach --env: --user: --workdir: --index:
  --name: --service-ports --use-aliases --quiet-pull --remove-orphans --entrypoint: --label: -l: --publish: |leaves -v:
  --volume: --privileged
other: ask is not known to be harmless
`
	kubectlOptions = `
@ sub -n: --namespace: -v: --v: --version --help -h --request-timeout: --warnings-as-errors` + kubectlHarm + `
get, describe, logs, top, top pod, top pods, top node, top nodes, events, explain, api-resources, api-versions,
  version, cluster-info, rollout, rollout status, rollout history, rollout restart, rollout undo, rollout pause,
  rollout resume, apply, create, delete, scale, annotate, label, diff, wait, auth, auth can-i, auth whoami, config,
  config view, config current-context, config get-contexts, config get-clusters, cordon, uncordon, expose, autoscale,
  run, patch, replace, kustomize, plugin list, options, help, set image, set resources, set env, set: sub -n: -A -w
  -l: -L: -o: -R -f: -k: -c: -p -i -t -q -h --namespace: --all-namespaces --watch --watch-only --selector:
  --label-columns: --output: --recursive --filename: --kustomize: --container: --previous --follow --tail: --since:
  --since-time: --timestamps --all-containers --prefix --limit-bytes: --max-log-requests: --ignore-not-found
  --sort-by: --show-labels --show-kind --show-managed-fields --field-selector: --chunk-size: --headers --no-headers
  --containers --sum --use-protocol-buffers --revision: --to-revision: --timeout: --dry-run --force --grace-period:
  --now --cascade --wait --replicas: --current-replicas: --resource-version: --overwrite --all --local --for: --client
  --short --verbs: --namespaced --api-group: --categories: --record --server-side --field-manager: --force-conflicts
  --validate --prune --image: --restart: --port: --target-port: --type: --name: --labels: --env: --command --rm
  --stdin --tty --attach --quiet --patch: --minify --flatten --raw --min: --max: --cpu-percent: --template:
  --save-config --save --requests: --limits: --list --show-events --ignore-errors --allow-missing-template-keys
  --from-literal: --subresource: --output-watch-events --pod-running-timeout: --request-timeout: --overrides: --from:
  --keys: --pods --protocol: --serviceaccount: |reads --from-file: --from-env-file: --patch-file:` + kubectlHarm + `
exec: first=1 -n: -c: -i -t -q --namespace: --container: --stdin --tty --quiet --pod-running-timeout:` + kubectlHarm + `
config other, rollout other, top other, auth other, set other, plugin, edit, cp, debug, proxy, port-forward,
  attach, drain, taint, certificate, completion, krew, other: ask is not known to be harmless
`
	kubectlHarm = ` |leaves --kubeconfig: --context: --cluster: --server: -s: --user: --token: --as: --as-group: --as-uid:
  --certificate-authority: --client-certificate: --client-key: --insecure-skip-tls-verify --tls-server-name:
  --cache-dir: --username: --password: --profile-output: --log-file: --log-dir: `
	helmOptions = `
@ sub -n: --namespace: --debug --version -h --help` + kubectlHarm + `
list, ls, status, history, get, get values, get manifest, get notes, get all, get hooks, get metadata, search,
  search repo, search hub, show, show chart, show values, show readme, show all, version, env, lint, template, dependency,
  dependency list, dependency update, dependency build, repo, repo list, repo update, install, upgrade, rollback,
  uninstall, test, package, create, help: sub -n: -A -a -q -o: -f:/ -i -g -u -l: -m: --namespace: --all-namespaces
  --all --short --output: --revision: --set: --set-string: --set-json: --values:/ --install --create-namespace --wait
  --wait-for-jobs --atomic --timeout: --version: --dry-run --debug --force --reuse-values --reset-values
  --cleanup-on-fail --history-max: --max: --filter: --selector: --pending --deployed --failed --superseded
  --generate-name --description: --keep-history --no-hooks --skip-crds --include-crds --show-only: -s: --strict
  --versions --regexp --devel --dependency-update --show-resources --show-desc --no-headers --date --reverse --offset:
  --max-col-width: --logs |runs --post-renderer: --post-renderer-args: |writes --output-dir: -d: --destination:
  |reads --set-file: |leaves --repo: --ca-file: --cert-file: --key-file: --keyring: --username: --password:
  --pass-credentials --insecure-skip-tls-verify --registry-config: --repository-cache: --repository-config:` + kubectlHarm + `
repo other, plugin, registry, pull, push, get other, show other, search other, dependency other, other: ask is not known to be harmless
`
	pythonOptions = `
@ first=1 -V -h -u -B -b -d -E -I -s -S -O -OO -q -v -x -W: -P -R -m:; --version --help |runs -c: -i -X:
  --check-hash-based-pycs:
`
	nodeOptions = `
@ first=1 -v -h -c --version --help --test --watch --check --trace-warnings --trace-deprecation --warnings
  --no-warnings --deprecation --max-old-space-size: --enable-source-maps --experimental-vm-modules
  --experimental-strip-types --test-only --test-name-pattern: --test-concurrency: --test-timeout: --test-reporter:
  --experimental-test-coverage --stack-trace-limit: --unhandled-rejections: --expose-gc --preserve-symlinks --run:;
  |runs -e: -p: -r: -i --eval: --print: --require: --import: --loader: --experimental-loader: --interactive
  --icu-data-dir: --openssl-config: -C: --conditions: --inspect* --snapshot-blob: --build-snapshot |writes --cpu-prof*
  --heap-prof* --heapsnapshot* --trace-event* --redirect-warnings: --report* --diagnostic-dir:
  --test-reporter-destination: --prof --log* |reads --env-file*
`
	perlOptions = `
@ first=1 -w -W -c -T -t -v -V -h -X -u -U |runs -e: -E: -n -p -M: -m: -I: -d? -i? -x? -C? -S -s -0? -a -F: -l? -D?
`
	rubyOptions = `
@ first=1 -w -W? -c -v -h --version --verbose --help --yjit --jit |runs -e: -r: -I: -C: -x? -S -n -p -i? -s -0? -a -F:
  -l --require: --dump: --enable: --disable: -d -X: --debug -E: -K? -U -T?
`
	phpOptions = `
@ first=1 -v -h -m -l -q -f:; --version --help --modules --syntax-check --ini -n --no-php-ini |runs -r: -B: -R: -F: -E:
  -d: -c: -S: -t: -z: -a -i -s -w --run: --process-* --define: --php-ini: --zend-extension: --interactive --server:
  --docroot: --rf* --re* --rc* --ri* --rz*
`
	luaOptions = `
@ first=1 -v -W -E |runs -e: -l: -i -j: -b -O? -
`
	shellOptions = `
@ first=1 plus -n -x -e -u -v -f -h -m -a -b -B -C -E -H -P -T -p -k -c:; -o: -O: --norc --noprofile --posix
  --restricted --version --help --verbose --noediting -r |runs --rcfile: --init-file: -i -l -s --login --debugger -D
  --dump-strings --dump-po-strings
`
	otherLanguages = `
@ first=1 -v -V -h -q -w --version --help --verbose --quiet --vanilla --slave --no-save --no-restore --no-init-file
  --no-environ
`
	denoOptions = `
@ sub -V -h --version --help -q --quiet
run: first=1 -q --quiet --check --no-check --watch --cached-only --no-remote --no-npm --frozen --no-prompt |leaves -A
  --allow-* -c: --config: --import-map: --lock: --env* --location: |runs --preload: -r --reload --inspect* --v8-flags*
  --unstable* --cert: --seed:
test, check, lint, fmt, task, cache, info, doc, types: -q --quiet --watch --check --no-check --filter: --fail-fast
  --parallel --doc --coverage --json --no-run --ignore: --ext:
other: ask is not known to be harmless
`
	databaseText  = `~writefile( ~_directory ~load_extension ~edit( ~fts3_tokenizer ~attach ~readfile( ~vacuum `
	sqliteOptions = `
@ single ` + databaseText + `
  ~.save ~.backup ~.clone ~.import ~.load ~.once ~.excel ~.archive ~.log ~.trace ~.cd ~.read ~.shell ~.system ~.output
  ~.session ~.restore ~.testcase ~.dbtotxt -header -noheader -csv -json -readonly -column -batch -line -list -html
  -markdown -table -box -quote -tabs -ascii -separator: -newline: -nullvalue: -bail -version -help -echo -stats -safe
  -memtrace -nofollow -interactive |runs -cmd: -init: -vfs: -zip -A* |writes -append -deserialize -unsafe-testing
`
	psqlOptions = `
@ ~\! ~\o ~\copy ~\i ~\w ~\g ~\s ~\e ~\c ~\setenv ~\lo_ ~program ~copy ~lo_export ~lo_import ~pg_read ~pg_write ~pg_ls ~dblink -c: -l -d: -U: -h: -p: -t -A -x -q -w -W -X -1 -e -E -a -b -n -S -s -V -F: -R: -P: -T: -z -0 -H --command: --list
  --dbname: --host: --port: --username: --tuples-only --no-align --expanded --quiet --no-password --no-psqlrc
  --single-transaction --echo-all --echo-queries --csv --html --field-separator: --record-separator: --pset: --version
  --help |runs -f: --file: -v: --set: --variable: |writes -o: --output: -L: --log-file:
`
	mysqlOptions = `
@ ~\! ~system ~outfile ~dumpfile ~load_file ~infile ~source ~tee ~pager ~\. -e: -u: -p? -h: -P: -D: -B -N -t -s -v -r -E
  -H -X -f -n -A -C -V -q -i -w -? --execute: --user: --password --host: --port: --database: --batch --silent
  --skip-column-names --column-names --table --vertical --verbose --raw --html --xml --force --quick --auto-rehash
  --compress --version --help --protocol: --default-character-set: --ssl-mode: --connect-timeout: --safe-updates
  --no-beep |runs --pager --plugin-dir: --default-auth: --init-command: --ssl-* -S: --socket: |writes --tee:
  --histignore: -T |reads --defaults-file: --defaults-extra-file: --login-path: --local-infile
`
	opensslOptions = `
@ single sub -version -help
` + `version, ciphers, list, errstr, prime, speed: -a -v -V -b -o -f -p -d -e -r -s -stdname -tls1_2 -tls1_3 -hex -seconds:
  -bytes: -cipher-algorithms -digest-algorithms
x509, req, crl, verify, rsa, pkey, ec, pkcs12, pkcs7, asn1parse, dgst, sha256, sha1, sha512, md5, enc, base64, rand,
  passwd: first=9 -in:/ -noout -text -subject -issuer -dates -enddate -startdate -fingerprint -serial -inform:
  -outform: -hash -modulus -pubkey -purpose -email -ext: -checkend: -checkhost: -checkip: -nameopt: -sha1 -sha256
  -sha384 -sha512 -md5 -hex -base64 -a -A -d -e -pubin -check -verify -untrusted:/ -CAfile:/ -trusted:/ -days: -nodes
  -info -nokeys -nocerts -clcerts -cacerts -print_certs -i -strparse: -1 -5 -6 -apr1 -salt: -stdin -r -c -binary
  -hmac: -key:/ -signature:/ -aes-256-cbc -pbkdf2 -iter: -salt -nosalt |runs -engine: -provider* -config: -extfile:
  -passin: -passout: -pass: -load_privkey: |writes -out: -keyout: -CAserial: -CAcreateserial -newkey: -writerand:
  -rand: |reads -kfile: -CApath: -subj: -sign:` + `
other: ask serves, or writes where its words say
`
	ffmpegOptions = `
@ single here ~concat: ~file: ~movie= ~subfile, ~data: -i:/ -y -n -c* -b* -ss: -t: -to: -r: -s: -an -vn -sn -map: -crf:
  -preset: -loglevel: -v: -hide_banner -stats -nostats -nostdin -pix_fmt: -ac: -ar: -aspect: -frames* -vframes: -q*
  -qscale* -g: -tune: -profile* -level: -movflags: -threads: -shortest -acodec: -vcodec: -ab: -vb: -sseof: -itsoffset:
  -metadata: -loop: -framerate: -version -formats -codecs -encoders -decoders -filters -h -help -vol: -af:~=
  -vf:~movie -f: |runs -filter_script* -filter_complex* -lavfi: -init_hw_device: -protocol_whitelist: |writes -report
  -dump_attachment* -progress: -vstats* -passlogfile* -sdp_file: -attach: |leaves -safe: |reads -/*
`
	systemctlOptions = `
@ sub -a -l -q -t: -n: -o: -p: -s: -u --all --full --quiet --type: --state: --failed --lines: --output: --property:
  --value --no-pager --no-legend --plain --user --system --version --help -h --now --no-block --wait --signal:
  --kill-whom: --reverse --after --before --recursive --no-ask-password |leaves -H: --host: -M: --machine: --root:
  --image: --runtime --global --force -f
edit, set-environment, import-environment, link, enable, preset, set-default, kexec, switch-root, set-property,
  bind, mount-image, revert, add-wants, add-requires: ask changes what is started later
other: -a -l -q -t: -n: -o: -p: -s: -r --all --full --quiet --type: --state: --failed --lines: --output: --property:
  --value --no-pager --no-legend --plain --user --system --now --no-block --wait --signal: --kill-whom: --reverse
  --after --before --recursive --job-mode: |leaves -H: --host: -M: --machine: --root: --image:
`
	journalOptions = `
@ -u: -n? -f -b? -k -r -x -e -o: -p: -S: -U: -t: -T: -a -q -m -l -g: -c: -N -F: --unit: --user-unit: --lines --follow
  --boot --dmesg --reverse --catalog --pager-end --output: --output-fields: --priority: --since: --until:
  --identifier: --exclude-identifier: --all --quiet --merge --full --grep: --case-sensitive --cursor: --after-cursor:
  --fields --field: --no-pager --no-hostname --no-tail --no-full --utc --user --system --facility: --list-boots
  --disk-usage --header --verify --version --help -h --show-cursor --truncate-newline --invocation: -I
  --list-invocations |leaves -D: --directory: --file: -i: --root: --image: -M: --machine: --namespace: --image-policy:
  |writes --vacuum-size: --vacuum-time: --vacuum-files: --rotate --flush --sync --relinquish-var --smart-relinquish-var
  --setup-keys --update-catalog --cursor-file: --interval: --force
`
	pandocOptions = `
@ here -f: -r: -t: -w: -s -N -V: -M: -h -v --from: --to: --read: --write: --standalone --toc --table-of-contents
  --toc-depth: --number-sections --variable: --metadata: --wrap: --columns: --version --help --quiet --verbose
  --list-input-formats --list-output-formats -o:/ --output:/ |runs -F: --filter: -L: --lua-filter: --pdf-engine:
  --pdf-engine-opt: -C --citeproc |writes --extract-media: --log: |reads -d: --defaults: --data-dir: --template:
  --syntax-definition: -H: -B: -A: --include-*
`
	texOptions = `
@ single here -interaction: -halt-on-error -file-line-error -draftmode -version -help -output-format: -synctex:
  -output-directory:/ -jobname:/ -pdf -xelatex -lualatex -c -C -f -silent -quiet -bibtex -no-shell-escape
  |runs -shell-escape -enable-write18 -shell-restricted -e: -r: -pdflatex* -latex* -cnf-line: -progname: -fmt: -ini
  -mktex: -translate-file: -lua: -usepretex*
`
	jqOptions = `
@ -r -c -n -e -s -S -C -M -a -j -R -V -h --raw-output --compact-output --null-input --exit-status --slurp --sort-keys
  --color-output --monochrome-output --ascii-output --join-output --raw-input --raw-output0 --arg: --argjson: --args
  --jsonargs --tab --indent: --stream --seq --unbuffered --version --help -P -p: -o: -I: --prettyPrint --input-format:
  --output-format: |writes -i --inplace --in-place -s: --split-exp: |reads -f: --from-file: -L: --slurpfile: --rawfile:
  --argfile: --library-path:
`
	aptOptions = `
@ -y -q? -s -d -V -a -u -f -m -v -h -n --yes --quiet --simulate --dry-run --download-only --show-upgraded --installed
  --upgradable --upgradeable --manual-installed --all-versions --no-install-recommends --install-recommends
  --fix-broken --purge --auto-remove --autoremove --version --help --names-only --full --verbose-versions --reinstall
  --only-upgrade --no-upgrade --no-all-versions --assume-yes --assume-no --fix-missing --allow-downgrades -l -s -L -p
  -S -W -f: --list --status --listfiles --print-avail --search --show |runs -o: --option: -c: --config-file:
  --pre-invoke: --force-* --admindir: --root: --instdir: --no-debsig -t: --target-release: -i --install --unpack
  --configure -r --remove -P --triggers-only --build -b
`
	terraformOptions = `
@ single sub -version -help -no-color |leaves -chdir:
plan, validate, fmt, show, output, version, providers, graph, init, get, state, state list, state show, workspace,
  workspace list, workspace show, refresh, apply, destroy: sub -no-color -input: -lock: -lock-timeout: -parallelism:
  -refresh: -target: -var: -json -check -diff -recursive -detailed-exitcode -compact-warnings -destroy -refresh-only
  -replace: -raw -upgrade -reconfigure -auto-approve -type: |leaves -state: -state-out: -backup: -plugin-dir:
  -from-module: -backend-config: -var-file: -out: -generate-config-out: -migrate-state -force-copy
state other, workspace other, other: ask is not known to be harmless
`
	tcpdumpOptions = `
@ -i: -n -c: -v -e -A -X -x -q -t -s: -l -p -S -D -L -N -K -d -f -# --version --help |runs -z: |writes -w: -W: -C: -G:
  |reads -F: -r: -V: |leaves -Z:
`
	dateOptions = `
@ -u -R -I? -d: -r:/ --utc --universal --date: --rfc-email --rfc-3339: --iso-8601 --reference:/ --version --help
  --debug -j -v: -f: |writes -s: --set: |reads --file:
`
	nmapOptions = `
@ -s? -p: -P? -A -O -v -d -n -R -T? -F -r -6 -h -V --open --reason --top-ports: --version --help |runs --script*
  |writes -o: --append-output |leaves --datadir: --servicedb: -e: -S: -D: --proxies: --resume: |reads -i: --excludefile:
  --stylesheet:
`
)
