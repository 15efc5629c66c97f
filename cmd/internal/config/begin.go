package config

import _ "embed"

//go:embed begin.toml
var begin []byte

// Init returns a short commented config file to start with: the keys that most people set.
func Init() []byte { return append([]byte(nil), begin...) }
