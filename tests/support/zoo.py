"""Models from the literature with answers that were derived by hand or are classical, as functions of theta.

`identifiable` generates the field of globally identifiable functions, initial values included; `degree` is
the least number of points of a fibre that agree in r coordinates. How each answer is obtained is said in
`why`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from equifinal.language.model import Model


@dataclass(frozen=True)
class Known:
    name: str
    equations: str
    outputs: str
    identifiable: str
    why: str
    degree: int = 1
    inputs: str = ""
    constants: dict[str, object] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        text = self.equations.replace(";", "\n")
        return Model.parse(text, self.outputs.split(), inputs=self.inputs.split(), constants=self.constants)

    @property
    def functions(self) -> list[str]:
        return [f for f in self.identifiable.split(", ") if f]


SIR = "S' = -b*S*I; I' = b*S*I - g*I"
SEIR = "S' = -b*S*I; E' = b*S*I - a*E; I' = a*E - g*I"
HIV = "T' = lam - rho*T - beta*T*V; U' = beta*T*V - delta*U; V' = N*delta*U - c*V"
LV = "x' = a*x - b*x*z; z' = -c*z + d*x*z"
CHAIN = "x1' = -k1*x1; x2' = k1*x1 - k2*x2"

ZOO = [
    # --- epidemics ---
    Known(
        "SI of the paper",
        "S' = -beta*S*I + gamma*I; I' = beta*S*I - gamma*I; S(0) = N - I0; I(0) = I0; y = rho*I",
        "y",
        "10000*beta - gamma, beta/rho, rho*I0",
        "I' = (beta*N - gamma)*I - beta*I^2 is logistic; y obeys it with beta/rho, and y(0) = rho*I0",
        constants={"N": 10000},
    ),
    Known(
        "SIS, I observed, N unknown",
        "I' = b*(N - I)*I - g*I",
        "I",
        "b, b*N - g, I_0",
        "logistic: two rates and the start",
    ),
    Known(
        "SIR, I observed",
        SIR,
        "I",
        "b, g, S_0, I_0",
        "I'/I = b*S - g and S'/S = -b*I give (I'/I)' = -b*I*(I'/I + g)",
    ),
    Known(
        "SIR, a share of I observed",
        SIR + "; y = k*I",
        "y",
        "g, b/k, k*I_0, k*S_0",
        "scaling of S and I by a, b and k by 1/a",
    ),
    Known(
        "SIR with known N",
        SIR + "; S(0) = N - I0; I(0) = I0; y = k*I",
        "y",
        "b, g, k, I0",
        "g, b/k, k*I0 and k*(N - I0) as above: their sum gives k",
        constants={"N": 1000},
    ),
    Known(
        "SIR with frequency-dependent infection",
        "S' = -b*S*I/N; I' = b*S*I/N - g*I; S(0) = N - I0; I(0) = I0; y = k*I",
        "y",
        "b, g, I0/N, k*I0",
        "with s = S/N, i = I/N nothing but b and g is left; y = (k*N)*i, i(0) = I0/N",
    ),
    Known("SIR without infected", SIR + "; I(0) = 0; y = k*I", "y", "", "I stays 0 and so does y"),
    Known(
        "SIR with births, Tuncer and Le 2018",
        "S' = mu*N - b*S*I/N - mu*S; I' = b*S*I/N - (mu + nu)*I; y = k*I",
        "y",
        "mu, nu, b, N*k, k*I_0, k*S_0",
        "scaling of S, I, N against k; the input-output coefficients give the rates",
    ),
    Known(
        "SEIR, I observed",
        SEIR,
        "I",
        "b, a + g, a*g, I_0, a*S_0, a*(E_0 + I_0)",
        "I'' + (a+g)*I' + a*g*I = a*b*S*I is symmetric in a and g; I'(0) + (a+g)*I_0 = a*(E_0 + I_0)",
        degree=2,
    ),
    Known(
        "SEIR, nobody exposed at first",
        SEIR + "; E(0) = 0; I(0) = 1",
        "I",
        "b, a, g, S_0",
        "as above with a*(E_0 + I_0) = a: the swap is gone",
    ),
    Known(
        "SIWR cholera, with population, Eisenberg, Robertson and Tien 2013",
        "S' = mu - bi*S*I - bw*S*W - mu*S + al*R; I' = bi*S*I + bw*S*W - (gam + mu)*I; W' = xi*(I - W); "
        "R' = gam*I - (mu + al)*R; y = k*I; z = S + I + R",
        "y z",
        "mu, bi, bw, al, gam, xi, k, S_0, I_0, W_0, R_0",
        "everything is identifiable there",
    ),
    # --- viruses ---
    Known(
        "HIV from the uninfected steady state",
        HIV + "; T(0) = lam/rho; U(0) = 0; V(0) = 50",
        "V",
        "beta, c, delta, rho, lam*N",
        "T, U, lam scale against N, and so does the start; U(0) = 0 breaks the swap of c and delta",
    ),
    Known(
        "HIV from known numbers",
        HIV + "; T(0) = 1000; U(0) = 0; V(0) = 50",
        "V",
        "beta, c, delta, rho, lam, N",
        "T(0) fixes the scale",
    ),
    Known(
        "HIV, all initial values unknown",
        HIV,
        "V",
        "rho, beta, V_0, c + delta, c*delta, T_0/lam, N*delta*lam, U_0*N*delta + V_0*delta",
        "V'' + (c+delta)*V' + c*delta*V = N*delta*beta*T*V",
        degree=2,
    ),
    Known(
        "viral load and cells, Perelson 1996 type",
        "T' = s - d*T - k*T*V; U' = k*T*V - e*U; V' = p*U - c*V",
        "T V",
        "s, d, k, T_0, V_0, c + e, c*e, p*(U_0) - c*V_0, p",
        "V'' + (c+e)*V' + c*e*V = p*k*T*V gives p, the sum and the product; V'(0) = p*U_0 - c*V_0",
        degree=2,
    ),
    Known(
        "Hill and Michaelis-Menten rates of one substrate",
        "x' = -v*s^2/(k^2 + s^2)*x; y' = -v*s/(k + s)*y; z' = -(v + k)*z",
        "x y z",
        "v + k, v*s/(k + s), v*s^2/(k^2 + s^2), x_0, y_0, z_0",
        "three rates; the equations without denominators have k = s = 0 as a solution besides, where they are 0/0",
        degree=2,
    ),
    # --- ecology ---
    Known("Lotka-Volterra, prey observed", LV, "x", "a, c, d, x_0, b*z_0", "z scales against b"),
    Known("Lotka-Volterra, both observed", LV, "x z", "a, b, c, d, x_0, z_0", "linear regression"),
    Known("Lotka-Volterra, predator absent", LV + "; z(0) = 0", "x", "a, x_0", "x = x_0*exp(a*t)"),
    Known("logistic growth", "x' = r*x*(1 - x/K)", "x", "r, K, x_0", "regression of x'/x on x"),
    Known("logistic growth on an unknown scale", "x' = r*x*(1 - x/K); y = s*x", "y", "r, s*K, s*x_0", "scaling"),
    Known(
        "competition, one species observed",
        "x' = x*(r1 - a11*x - a12*z); z' = z*(r2 - a21*x - a22*z)",
        "x",
        "r1, r2, a11, a21, x_0, a12*z_0, a22*z_0",
        "z scales against a12 and a22",
    ),
    # --- pharmacokinetics ---
    Known(
        "bolus, one compartment",
        "x' = -k*x; x(0) = D; y = x/V",
        "y",
        "k, V",
        "y = D/V*exp(-k*t)",
        constants={"D": 100},
    ),
    Known(
        "flip-flop absorption",
        "A' = -ka*A; C' = ka*A - ke*C; A(0) = D; C(0) = 0; y = C/V",
        "y",
        "ka + ke, ka*ke, ka/V",
        "two exponentials, symmetric, with y'(0) = D*ka/V",
        degree=2,
        constants={"D": 100},
    ),
    Known(
        "two compartments, bolus",
        "x1' = -(k01 + k21)*x1 + k12*x2; x2' = k21*x1 - k12*x2; x1(0) = 100; x2(0) = 0",
        "x1",
        "k01, k12, k21",
        "y'(0) gives k01 + k21; trace and determinant of the matrix the rest",
    ),
    Known(
        "two compartments, both leaking, Bellman and Astrom 1970 type",
        "x1' = -(k1 + k2)*x1 + k3*x2 + u; x2' = k2*x1 - (k3 + k4)*x2",
        "x1",
        "k1 + k2, k3 + k4, k2*k3, x1_0, k3*x2_0",
        "coefficients of the transfer function, and y'(0)",
        inputs="u",
    ),
    Known(
        "chain of two, start unknown",
        CHAIN,
        "x2",
        "k1 + k2, k1*k2, x2_0, k1*(x1_0 + x2_0)",
        "symmetric in the rates",
        degree=2,
    ),
    Known(
        "chain of two, first empty",
        CHAIN + "; x1(0) = 0",
        "x2",
        "k2, x2_0",
        "x1 stays 0; the Wronskian is degenerate",
    ),
    Known("Michaelis-Menten", "x' = -Vm*x/(Km + x)", "x", "Vm, Km, x_0", "1/x' is linear in 1/x"),
    Known(
        "Michaelis-Menten on an unknown scale",
        "x' = -Vm*x/(Km + x); y = s*x",
        "y",
        "s*Vm, s*Km, s*x_0",
        "scaling",
    ),
    Known(
        "Michaelis-Menten and a linear way out",
        "x' = -Vm*x/(Km + x) - k*x; y = s*x",
        "y",
        "k, s*Vm, s*Km, s*x_0",
        "scaling",
    ),
    # --- cells ---
    Known(
        "gene expression from nothing",
        "m' = a - d*m; p' = k*m - g*p; m(0) = 0; p(0) = 0",
        "p",
        "d + g, d*g, a*k",
        "p'' + (d+g)*p' + d*g*p = a*k, p(0) = p'(0) = 0",
        degree=2,
    ),
    Known("gene expression at rest", "m' = a - d*m; m(0) = a/d", "m", "a/d", "m does not change"),
    # --- mechanics and dynamics ---
    Known(
        "driven oscillator",
        "x' = v; v' = (u - c*v - k*x)/m",
        "x",
        "m, c, k, x_0, v_0",
        "m*x'' + c*x' + k*x = u",
        inputs="u",
    ),
    Known(
        "free oscillator",
        "x' = v; v' = (-c*v - k*x)/m",
        "x",
        "c/m, k/m, x_0, v_0",
        "only ratios without a force",
    ),
    Known("van der Pol", "x' = v; v' = mu*(1 - x^2)*v - x", "x", "mu, x_0, v_0", "regression"),
    Known(
        "FitzHugh-Nagumo, voltage observed",
        "v' = v - v^3/3 - w + J; w' = e*(v + a - b*w)",
        "v",
        "e, b, a - b*J, v_0, w_0 - J",
        "w and J may be shifted together, a by b times as much",
    ),
    Known(
        "Lorenz, first coordinate observed",
        "x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z",
        "x",
        "s, r, b, x_0, y_0, z_0",
        "y and z are rational in x, x', x''; its equation has coefficients s, b*(1+s), b*s*(1-r)",
    ),
    # --- small and odd ---
    Known(
        "sum of exponentials",
        "x1' = a*x1; x2' = b*x2; y = x1 + x2",
        "y",
        "a + b, a*b, x1_0 + x2_0, a*x1_0 + b*x2_0",
        "symmetric",
        degree=2,
    ),
    Known(
        "sum of exponentials, one absent",
        "x1' = a*x1; x2' = b*x2; x2(0) = 0; y = x1 + x2",
        "y",
        "a, x1_0",
        "y = x1",
    ),
    Known("entering at third order", "S' = 1 + a*S^2; S(0) = 0", "S", "a", "S = t + a*t^3/3 + ..."),
    Known("product of rates", "x' = -a*b*x", "x", "a*b, x_0", "only the product enters"),
    Known("square of a rate", "x' = -a^2*x", "x", "a^2, x_0", "the sign of a does not matter", degree=2),
    Known("two worlds", "x' = -k*x; z' = -m*z", "x", "k, x_0", "z is not seen"),
    Known("circle", "x' = 0*x; z' = 0*z; y = x^2 + z^2", "y", "x_0^2 + z_0^2", "nothing moves", degree=2),
    Known(
        "large known number",
        "I' = b*(N - I)*I - g*I; y = s*I",
        "y",
        "b*123456789 - g, b/s, s*I_0",
        "as the SI model",
        constants={"N": 123456789},
    ),
    Known(
        "small known number",
        "x' = p*e - k*x; x(0) = 0; y = s*x",
        "y",
        "k, p*s",
        "y' = e*p*s - k*y",
        constants={"e": "1e-5"},
    ),
    Known(
        "square of a state that starts at zero",
        "x' = p - k*x; x(0) = 0; y = x^2",
        "y",
        "k, p^2",
        "x = p/k*(1 - exp(-k*t)): only the sign of p is lost; at time 0 the links say 0 = 0",
        degree=2,
    ),
]


def known(name: str) -> Known:
    return next(entry for entry in ZOO if entry.name == name)
