package vendortest

// Fact is a row of what a server refuses.
type Fact struct{ Origin, Fact, At string }

// Facts returns the rows of a vendor; Origin is the file of facts/shared that a row stands in, "" = the vendor's own.
func Facts(vendor string) ([]Fact, error) {
	f, err := readFacts(vendor)
	if err != nil {
		return nil, err
	}
	rows := make([]Fact, len(f.Refuse))
	for i := range f.Refuse {
		rows[i] = Fact{f.Refuse[i].origin, f.Refuse[i].Fact, f.Refuse[i].At}
	}
	return rows, nil
}
