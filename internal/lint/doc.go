// Package lint holds no code, only tests that keep the project's shape: which
// package may import which, what a program that embeds minikudu compiles, that
// every exported name and every package is documented, and that only one package
// imports compression libraries.
package lint
