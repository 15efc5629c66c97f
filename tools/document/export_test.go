package document

// Read is what the process does.
var Read = read
