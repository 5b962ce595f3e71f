// Package sqltext reads the small languages of the command line: filter expressions
// ([ParseWhere]), aggregates ([ParseAggregates]), assignments ([ParseSet]), sort
// orders ([ParseOrderBy]), lists of names ([ParseNames]), and sizes, durations and
// times ([ParseSize], [ParseDuration], [ParseTime]).
//
// The grammar of a filter, in SQL's precedence:
//
//	expr    = and { OR and }
//	and     = not { AND not }
//	not     = NOT not | ( expr ) | TRUE | FALSE | test
//	test    = name compare literal | literal compare name
//	        | name IS [NOT] NULL
//	        | name [NOT] IN ( literal {, literal} )
//	        | name [NOT] BETWEEN literal AND literal
//	        | name [NOT] LIKE 'pattern'
//	compare = = | == | != | <> | < | <= | > | >=
//	literal = number | 'text' | TRUE | FALSE | NULL | 0x…
//
// Words are not case-sensitive, names are. A name that is not [A-Za-z_][A-Za-z0-9_]*
// or is one of the words is double-quoted. An integer becomes an int64; any other
// number stays text, so that a decimal column gets it exactly; text is parsed as the
// column's type when the expression is bound to a table.
//
// Every error is a [SyntaxError]. The functions are pure and safe for concurrent use.
package sqltext
