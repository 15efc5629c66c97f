# shellcheck shell=bash
# Sourced by .ci/run.

# What Debian's package is for other distributions: the one that CI runs on has none. Three npm packages without
# dependencies of their own.
pglite_versions=(@electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 @electric-sql/pglite-pgvector@0.0.15)

# pgvector_all runs the tests of vectors on a PostgreSQL that has pgvector.
pgvector_all() {
	local dir=$scratch/pgvector port=${PGVECTOR_PORT:-55442} rc=0 try
	mkdir -p "$dir" && cp "$here/pgvector.mjs" "$dir/serve.mjs" || return 1
	retry npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$dir" "${pglite_versions[@]}" || return 1
	coproc pgvector_server { exec node "$dir/serve.mjs" "$port" 2>&1; }
	local server=$pgvector_server_PID
	read -r -t 120 try <&"${pgvector_server[0]}" || rc=1
	if ((rc == 0)) && [[ $try == ready ]]; then
		# One session: statements that are prepared by name would be those of all connections.
		ZEPH_TEST_PGVECTOR="postgres://postgres:postgres@127.0.0.1:$port/postgres?sslmode=disable&default_query_exec_mode=exec" \
			go test ./persistence/vector -run 'Pgvector' -v -count=1 -timeout 20m || rc=1
	else
		echo "no server: ${try:-it said nothing}"
		rc=1
	fi
	kill "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
	return "$rc"
}
