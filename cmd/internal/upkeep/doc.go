// Package upkeep does the jobs of an operator: backups, migrations, what is stored about a person, and
// what a report of a mistake needs.
package upkeep
