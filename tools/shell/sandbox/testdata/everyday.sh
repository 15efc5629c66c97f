# Makes the repository in which the commands of policy/testdata/everyday_reading.tsv are run. Times are fixed, so that
# two repositories look alike.
set -e
umask 022
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2024-01-02T03:04:05Z' GIT_COMMITTER_DATE='2024-01-02T03:04:05Z'
git init -q -b main .
git config user.name a
git config user.email a@example.org
mkdir -p src/lib docs
printf '# Project\n\nA small project. It has lines, and a.b.\n\n\tend\n' >README.md
printf 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi")\n}\n' >main.go
printf 'module example.org/m\n\ngo 1.26\n' >go.mod
printf 'import os\n\n\ndef run():\n    # TODO: more\n    return os.getpid()\n' >src/app.py
printf 'import sys\n\n\ndef util(x):\n    return x\n' >src/lib/util.py
printf 'def test_run():\n    pass\n' >src/test_app.py
printf '# Guide\n\nread this\n' >docs/guide.md
printf '# Setup\n\nfixme later\n' >docs/setup.md
printf 'id,v\na,1\nb,2\nc,3\n' >data.csv
printf '{"name":"m","items":[{"id":"a","v":1},{"id":"b","v":2}]}\n' >data.json
printf '{"name":"m","scripts":{"build":"true","test":"true"}}\n' >package.json
printf '# config\nname: m\nport: 80\n' >config.yaml
printf '1 INFO start\n2 ERROR bad\n3 WARN slow\n4 ERROR worse\n5 INFO end\n' >app.log
printf 'all:\n\t@echo all\n' >Makefile
printf 'notes\n' >'My Notes.txt'
printf '*.tmp\n' >.gitignore
: >empty.txt
tar --mtime='2024-01-02 03:04:05Z' --owner=0 --group=0 --numeric-owner -czf a.tgz docs
gzip -n -c app.log >log.gz
if command -v zip >/dev/null; then TZ=UTC zip -q -X a.zip README.md; fi
touch -d '2024-01-02T03:04:05Z' src/* docs/* ./*.*
git add -A
git commit -qm one
printf 'def more():\n    pass\n' >>src/app.py
git commit -qam two
git branch side HEAD~1
git tag -a -m tag v1
printf 'print(1)\n' >>src/test_app.py
printf 'new\n' >new.txt
git add new.txt
printf 'x\n' >untracked.txt
touch -d '2024-01-02T03:04:05Z' src/* docs/* ./*.* src docs .
