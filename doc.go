// Package forge is the vocabulary of pfl-forge.
package forge
