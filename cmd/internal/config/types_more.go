package config

// Skills is the table [skills].
type Skills struct {
	Enabled bool     `toml:"enabled" default:"true" doc:"Offer skills that an admin has accepted in the chat (/skills)."`
	Paths   []string `toml:"paths" place:"granted" doc:"Folders of skills, or folders that contain such folders. Commands may read accepted skills there, and change nothing. Empty: no skills."`
}

// WebSearch is the table [web_search].
type WebSearch struct {
	Backend    string `toml:"backend" enum:"searxng|brave|tavily" doc:"Who searches. Empty: there is no tool web_search."`
	URL        string `toml:"url" url:"https|http" place:"none" doc:"Address of the SearXNG, which must offer the format json; it may be a private one. For brave and tavily: another address of their API. Empty: the vendor's."`
	APIKey     Secret `toml:"api_key" doc:"Key of brave or tavily."`
	MaxResults int    `toml:"max_results" default:"8" min:"1" max:"20" doc:"Results of one search, unless the model asks for fewer."`
	Timeout    int    `toml:"timeout" default:"15" min:"1" max:"300" doc:"Seconds that one search may take."`
}
