package pathrule

import (
	"slices"
	"strings"
)

// secretNames are files and directories in which programs keep credentials, by their documentation.
func secretNames() []string {
	return []string{
		".npmrc", "npmrc", ".yarnrc", ".yarnrc.yml", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".pgpass",
		".my.cnf", ".htpasswd", ".dockercfg", ".vault-token", ".boto", ".s3cfg",
		"credentials", ".credentials", "token", ".token",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
		".git", ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".gcloud",
	}
}

// HoldsSecret reports whether a file or directory of this name holds credentials by convention: .env, .npmrc, .netrc,
// credentials.toml, a private key, the directory .git. The name has no directory; the case of its letters is ignored.
// A template (.env.example) holds none.
func HoldsSecret(name string) bool {
	name = strings.ToLower(name)
	if name == ".env" || slices.Contains(secretNames(), name) {
		return true
	}
	if rest, ok := strings.CutPrefix(name, ".env."); ok {
		return !slices.Contains([]string{"example", "sample", "template", "dist", "defaults"}, rest)
	}
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return false
	}
	switch stem, ending := strings.TrimPrefix(name[:i], "."), name[i+1:]; ending {
	case "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx":
		return true
	case "toml", "json", "yml", "yaml", "ini", "db":
		for _, word := range []string{"credential", "client_secret", "service-account", "service_account"} {
			if strings.HasPrefix(stem, word) {
				return true
			}
		}
		return slices.Contains([]string{"secret", "secrets", "token", "tokens", "auth"}, stem)
	}
	return false
}
