package policy_test

import "github.com/zephbot/zephbot/policy/act"

// stated returns what tools like those of the service say of themselves.
func stated() []act.Tool {
	tool := func(name string, does act.Act, verb act.Verb, aliases ...string) act.Tool {
		return act.Tool{Name: name, Statement: act.Statement{Act: does, Verb: verb, Aliases: aliases}}
	}
	return []act.Tool{
		tool("bash", act.Runs, act.Run, "shell", "sh"),
		tool("read", act.ReadsFile, act.Read, "read_file"),
		tool("write", act.WritesFile, act.Write, "write_file"),
		tool("edit", act.WritesFile, act.Edit),
		tool("create_directory", act.MakesDirectory, act.Create),
		tool("delete_path", act.RemovesPath, act.Delete),
		tool("move_path", act.MovesPath, act.Move),
		tool("copy_path", act.CopiesPath, act.Copy),
		tool("find_path", act.Searches, act.Find, "glob"),
		tool("grep", act.Searches, act.Search),
		tool("list_directory", act.Searches, act.List),
		tool("search_code", act.Inspects, act.Search),
		tool("diagnostics", act.Inspects, ""),
		tool("fetch", act.ReadsWeb, act.Fetch),
		tool("web_scrape", act.ReadsWeb, act.Read),
		tool("read_overflow", act.Recalls, act.Read),
		tool("memory_search", act.Recalls, ""),
		tool("list_tasks", act.Recalls, ""),
		tool("tool_search", act.Recalls, ""),
		tool("ask_user", act.Asks, ""),
		tool("memory_save", act.Remembers, ""),
		tool("cancel_task", act.Keeps, ""),
		tool("schedule_periodic", act.Keeps, ""),
		tool("schedule_deferred", act.Keeps, ""),
	}
}
