package bot

// BucketRule says what the facts of a bucket are and whose. The package that stores them returns one for each of its
// buckets (Buckets); what is exported and erased of a person, and docs/personal-data.md, follow from it.
type BucketRule struct {
	Bucket string
	About  string // what a fact is and about whom, for docs/personal-data.md
	Found  string // how those about one person are found, for docs/personal-data.md
	// Owner is the member of the value, which is JSON, that says whose a fact is, if its key does not; AnyMember = any.
	// "" = the key says it, or the value is the id.
	Owner string
	// Message: the key is a chat and the number of a message there, and a fact is about
	// whom the private chat belongs to.
	Message bool
	// Stays says why a fact stays that names a person who is erased; "" = it is deleted if
	// it is theirs, and else changed.
	Stays Stay
	// StaysBelow is how the keys begin of those that stay; "" = all, unchanged. Others that name them are changed.
	StaysBelow string
	// Revision is the bucket by which other processes notice that a fact was erased; "" = they need not.
	Revision string
}

// AnyMember is the Owner of facts that belong to whom anything in their value names.
const AnyMember = "*"

// Stay is why something stays that names a person who was erased.
type Stay string

// Why facts stay.
const (
	StaysJob        Stay = "job"        // it is deleted with the receipt of the erasure
	StaysSums       Stay = "sums"       // what was spent this month, while a limit applies
	StaysLimit      Stay = "limit"      // a limit that an admin has set
	StaysConfigured Stay = "configured" // the configuration names the person
	StaysBriefly    Stay = "briefly"    // it is deleted by itself within a day
)
