"""Two published problems, whose data are in the shared folder."""

LYNX_HARE = '''
[model]
equations = """
hare' = (alpha - beta*lynx)*hare
lynx' = (-gamma + delta*hare)*lynx
"""
outputs = ["hare", "lynx"]
[parameters]
alpha = { prior = "normal", mean = 1, sd = 0.5, lower = 0 }
beta = { prior = "normal", mean = 0.05, sd = 0.05, lower = 0 }
gamma = { prior = "normal", mean = 1, sd = 0.5, lower = 0 }
delta = { prior = "normal", mean = 0.05, sd = 0.05, lower = 0 }
hare_0 = { prior = "lognormal", meanlog = 2.302585092994046, sdlog = 1 }
lynx_0 = { prior = "lognormal", meanlog = 2.302585092994046, sdlog = 1 }
s_hare = { prior = "lognormal", meanlog = -1, sdlog = 1 }
s_lynx = { prior = "lognormal", meanlog = -1, sdlog = 1 }
[noise]
hare = { family = "lognormal", sdlog = "s_hare" }
lynx = { family = "lognormal", sdlog = "s_lynx" }
[data]
file = "lynx_hare.csv"
'''

CHOLERA = '''
[model]
equations = """
S' = -beta*B/(B + kappa)*S
I' = beta*B/(B + kappa)*S - gamma*I
R' = gamma*I
B' = xi*I - delta*B
S(0) = 10000
I(0) = 0
R(0) = 0
B(0) = 10000
new_infections = 10000 - S
bacteria = B
"""
outputs = ["new_infections", "bacteria"]
[constants]
kappa = 1e6
[parameters]
beta = { prior = "halfcauchy", scale = 2.5 }
gamma = { prior = "halfcauchy", scale = 1 }
xi = { prior = "halfcauchy", scale = 25 }
delta = { prior = "halfcauchy", scale = 1 }
[noise]
new_infections = { family = "poisson" }
bacteria = { family = "lognormal", sdlog = 0.15 }
[data]
file = "cholera_sir.csv"
increments = ["new_infections"]
'''
