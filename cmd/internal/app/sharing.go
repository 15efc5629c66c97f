package app

// sharing wants what several processes have to have in common.
func (k *inspector) sharing() {
	if !k.c.Workspaces.Shared {
		return
	}
	const key = "workspaces.shared"
	if k.c.Database.URL == "" {
		k.wrong(key, "several processes need one database: set database.url to a PostgreSQL server, or workspaces.shared = false for one process")
	}
	if k.c.Redis.URL == "" {
		k.wrong(key, "several processes need one Redis server for quotas and send budgets: set redis.url, or workspaces.shared = false for one process")
	}
	if k.c.Workspaces.Dir == "" {
		k.wrong(key, "workspaces.dir is empty, and data_dir belongs to one process: set it to a directory on a volume that every process sees")
	}
	if k.c.Audit.Enabled && k.c.Audit.Destination != "" && k.c.Audit.Destination != "stdout" {
		k.warn("audit.destination", "every process writes a chain of its own beside this file; on a volume that not all of them see, `zephbot audit` finds only some")
	}
}
