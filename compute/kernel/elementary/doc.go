// Package elementary implements exp, log, sin and other functions without an exact GPU instruction, in float32.
//
// Each function is written once, as operations of package code: a kernel contains the instructions, and the functions of this
// package, as Exp and Log, compute on the host, bit for bit, the results of a kernel on a GPU. So the errors below are measured on
// the host: over all 2^32 inputs with VRAM_ALL_FLOATS=1, else over a sample.
//
// # Errors
//
// In units of the last place (ulp) of the result, against a reference of float64. Results that are denormal have an error of up to 1 ulp
// of the smallest denormal number more. NaN is the result for NaN, and for arguments for which C says so.
//
//	function  ulp   method
//	Exp       0.9   x = i*ln 2 + r, polynomial of r
//	Exp2      1.3   x = i + r, polynomial of r
//	Expm1     1.1   as Exp, with the difference in two floats
//	Log       0.9   x = 2^i * m with m from 2/3 to 4/3, polynomial of m-1
//	Log2      1.2   as Log, with the product by 1/ln 2 in two floats
//	Log1p     0.9   as Log
//	Sin, Cos  1.6   x less a multiple of π/2 in three parts; above 48039 by 96 bits of 2/π (Payne and Hanek)
//	Tanh      2.0   polynomial up to 0.55, else 1-2/(exp(2x)+1)
//	Erf       1.1   polynomial up to 0.93, else 1-exp(polynomial)
//	Pow       1.4   exp(y*log(x)) with the logarithm in two floats; the special cases of C99, annex F
//	Rsqrt     1.5   division by the square root, both rounded correctly
//
// The method and the coefficients of most are those that N. Juffa has published.
package elementary
