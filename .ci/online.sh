# online FILE REF: the page as it is in an archive. Links to what the archive lacks lead to the repository at REF, a tag or a commit.
# Sourced by .ci/release.

# What .ci/release puts into an archive besides the program and the licenses of others.
archived=(LICENSE README.md CHANGELOG.md zephbot.service)

online() {
	local site=https://github.com/zephbot/zephbot/blob/$2 raw=https://raw.githubusercontent.com/zephbot/zephbot/$2 kept
	kept=$(IFS='|' && echo "${archived[*]//./\\.}")
	# A target with a colon has a scheme already, and one that begins with # is in the page.
	sed -E -e "s@(!\\[[^]]*\\]\\()([A-Za-z0-9_./-]+\\))@\\1$raw/\\2@g" \
		-e "s@(\\]\\()([A-Za-z0-9_./-]+(#[^)]*)?\\))@\\1$site/\\2@g" \
		-e "s@\\($site/($kept)([#)])@(\\1\\2@g" "$1"
}
