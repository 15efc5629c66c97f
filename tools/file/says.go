package file

import "github.com/zephbot/zephbot/policy/act"

// Says returns the statements of this package's tools for the policy.
func Says() []act.Tool {
	return []act.Tool{
		{Name: "read", Statement: act.Statement{
			Act: act.ReadsFile, Verb: act.Read, Cache: act.Files, Gain: 0.55,
			Aliases: []string{"read_file"},
		}},
		{Name: "write", Statement: act.Statement{
			Act: act.WritesFile, Verb: act.Write, Gain: 0.55,
			Aliases: []string{"write_file"},
		}},
		// The list of cached tools in the seed includes edit. A cached edit would swallow a repeated one.
		{Name: "edit", Statement: act.Statement{Act: act.WritesFile, Verb: act.Edit, Gain: 0.75}},
		{Name: "find_path", Statement: act.Statement{
			Act: act.Searches, Verb: act.Find, Cache: act.Files, Gain: 0.65,
			Aliases: []string{"glob"},
		}},
		{Name: "grep", Statement: act.Statement{Act: act.Searches, Verb: act.Search, Cache: act.Files, Gain: 0.65}},
		{Name: "list_directory", Statement: act.Statement{
			Act: act.Searches, Verb: act.List, Cache: act.Files,
			Gain: 0.65,
		}},
		{Name: "create_directory", Statement: act.Statement{Act: act.MakesDirectory, Verb: act.Create, Gain: 0.75}},
		{Name: "delete_path", Statement: act.Statement{Act: act.RemovesPath, Verb: act.Delete, Gain: 0.75}},
		{Name: "move_path", Statement: act.Statement{Act: act.MovesPath, Verb: act.Move, Gain: 0.75}},
		{Name: "copy_path", Statement: act.Statement{Act: act.CopiesPath, Verb: act.Copy, Gain: 0.75}},
		{Name: "send_file", Statement: act.Statement{Act: act.ShowsFile, Verb: act.Send, Gain: 0.75}},
	}
}
