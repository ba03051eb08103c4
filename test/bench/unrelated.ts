/** Questions that have nothing to do with what two people tell each other about their lives. Ours, none from a data set. */
export const unrelated: readonly string[] = `
How do I reverse a linked list in Rust without unsafe code?
What is the boiling point of tungsten?
Explain the difference between TCP and QUIC congestion control.
Which treaty ended the Thirty Years' War?
How many moons does Neptune have?
Convert 37 degrees Celsius to Kelvin.
What does the HTTP status code 418 mean?
Write a SQL query that finds duplicate rows in a table.
Who proved the incompleteness theorems?
What is the chemical formula of sulfuric acid?
How do I mount an NFS share at boot on Debian?
What is the derivative of arctan(x)?
Which enzyme unwinds DNA during replication?
How tall is the Burj Khalifa?
What are the axioms of a vector space?
Why does my Kubernetes pod stay in CrashLoopBackOff?
Give me the capital cities of the Baltic states.
What is the melting temperature of gallium?
How do I undo the last commit in git but keep the changes?
Summarise the plot of Moby-Dick in two sentences.
What is a monad in category theory?
Which planet rotates clockwise?
How is the VAT number of an Austrian company structured?
What is the Big-O of heapsort?
How do you balance the equation of propane combustion?
Which Roman emperor built the wall across northern Britain?
Define the term eigenvalue.
How do I set the idle timeout of nginx upstream connections?
What is the half-life of carbon-14?
What was the Zimmermann telegram?
How many bits are in an IPv6 address?
Explain the Krebs cycle briefly.
What is the airspeed of a Boeing 747 at cruise?
Which amendment abolished slavery in the United States?
How do I write a regular expression for ISO dates?
What does idempotent mean in REST?
When was the printing press invented by Gutenberg?
What is the difference between mitosis and meiosis?
How do I compute a Fourier transform in NumPy?
Name the noble gases.
What is the tensile strength of carbon steel?
How does a Bloom filter work?
Which element has atomic number 79?
What is the GDP of Luxembourg?
How do I enable hyphenation in LaTeX?
Who wrote the opera Tosca?
What is the escape velocity of Mars?
How do I sort a dictionary by value in Python?
What causes the aurora borealis?
What is Ohm's law?
Translate "where is the railway station" into Hungarian.
Which sorting algorithm does V8 use?
How are tectonic plates moving in the Pacific?
What is the ASCII code of the tilde?
Explain eventual consistency.
How many vertices has a dodecahedron?
What is the maximum length of a DNS label?
Who was the first secretary general of the United Nations?
How do I cross-compile for ARM with zig?
What is the refractive index of diamond?
Which river flows through Vientiane?
How does a four-stroke engine work?
What are the symptoms of scurvy?
How do I parse command line flags in Go?
What is the Chandrasekhar limit?
Which language family does Basque belong to?
How is penicillin produced industrially?
What is a Merkle tree?
How do I calculate compound interest monthly?
What is the viscosity of glycerine at room temperature?
Who discovered the neutron?
What is the purpose of the Linux fstab file?
Explain the prisoner's dilemma.
What are the Miller indices of a crystal plane?
Which countries border Paraguay?
How do I resize a partition with parted?
What is the difference between RAID 5 and RAID 6?
What is the pH of lemon juice?
How does CRISPR cut the genome?
Name three Baroque composers from Venice.
What is the Coriolis effect?
How do I write a Dockerfile with multiple stages?
What is the wavelength of a sodium lamp?
Which tax form does a US partnership file?
What is the time complexity of Dijkstra with a Fibonacci heap?
How do I find memory leaks with valgrind?
What is the syntax of a CSS grid template?
Who painted the ceiling of the Sistine Chapel?
What is the specific heat of water?
How many chromosomes does a fruit fly have?
Which protocol does BGP run over?
What is the function of the hypothalamus?
How do I convert a PEM certificate to PKCS12?
What was the Defenestration of Prague?
Compute the determinant of a three by three matrix.
What is the difference between a stalactite and a stalagmite?
How does a transistor amplify a signal?
What is the orbital period of Jupiter?
Explain what a foreign key constraint does.
How do I squash commits interactively?
What is the density of mercury?
Which battle ended Napoleon's rule?
How do I declare a generic interface in TypeScript?
What is the formula for the volume of a cone?
Which acid is in vinegar?
How do vaccines with messenger RNA work?
What is the difference between latitude and longitude?
How do I measure the impedance of an antenna?
Which Greek letter denotes wavelength?
What does the acronym LASER stand for?
How do I create an index concurrently in PostgreSQL?
What is the Pauli exclusion principle?
How deep is the Mariana trench?
Which bird lays the largest egg?
How do I configure a static route on a Cisco router?
What is the gestation period of an elephant?
What is the difference between a hurricane and a typhoon?
Who formulated the periodic law?
What is the meaning of the Latin phrase ceteris paribus?
How do I disable swap on Ubuntu?
What is an isotope of uranium used in reactors?
How many teeth does an adult shark have?
Explain quantum entanglement.
What is the standard gauge of a railway in millimetres?
How do I vectorise a loop with AVX2 intrinsics?
What is the exchange rate mechanism of a currency board?
Which organ produces insulin?
What is the Treaty of Tordesillas?
How do I profile a Node process with flame graphs?
What is the surface area of a sphere with radius four?
Which mineral is hardest on the Mohs scale?
What is the difference between a simile and a metaphor?
How do I write a Makefile with pattern rules?
What is the mass of an electron?
Who invented the telegraph?
How does a heat pump reach a coefficient above one?
What are the cardinal numbers of infinite sets called?
How do I rotate logs with logrotate?
What is the capital of Kyrgyzstan?
What is the thermal conductivity of copper?
How does public key cryptography work?
What is the longest river of Asia?
Which kings ruled during the Wars of the Roses?
What is the role of a load balancer?
How do I implement a mutex with compare and swap?
What is photosynthesis in C4 plants?
How is steel galvanised?
What is the difference between alternating and direct current?
Explain the Doppler effect for radar.
How do I write unit tests with fixtures in pytest?
Which constellation contains Betelgeuse?
What is the legal threshold for an antitrust merger review?
How do I encode a JWT header?
What is Avogadro's number?
What is the largest desert on Earth?
How do I flash firmware over UART?
What is a subnet mask of slash 26?
Which vitamin prevents rickets?
How do I compile a kernel module?
What is the difference between debit and credit in bookkeeping?
What is Bernoulli's principle?
Which metals are ferromagnetic?
How does garbage collection work in the JVM?
What is the syllable structure of haiku?
Who was the last pharaoh of Egypt?
How do I configure CORS in Express?
What is the atomic radius of caesium?
What does the function of a capacitor depend on?
How do I compute the levenshtein distance?
What is the difference between bacteria and archaea?
Which ocean current warms Norway?
How do I list open ports on macOS?
What is the Nernst equation?
Who signed the Magna Carta?
What is the meaning of the opcode 0x90 on x86?
How do I merge two PDF files from the command line?
What is the vapour pressure of ethanol?
How does the electoral college allocate votes?
What is a Turing machine?
Which layer of the atmosphere holds ozone?
How do I set up a cron job that runs every quarter hour?
What is the currency of Bhutan?
Explain the halting problem.
How many grams are in a troy ounce?
What is the difference between a crocodile and an alligator?
How do I enable two-phase commit in a distributed database?
What is the Young's modulus of aluminium?
Which philosopher wrote the Critique of Pure Reason?
How do I decode a base64 string in bash?
What is the airspeed record of a jet aircraft?
How do barnacles attach to hulls?
What is a zero-knowledge proof?
Which treaty created the European Coal and Steel Community?
How do I write a recursive descent parser?
What is the luminosity of the sun?
What is the rule of 72 in finance?
How does a mass spectrometer separate ions?
Which countries use the Cyrillic alphabet?
What is tail call optimisation?
How do I pin a package version with apt?
What are the four Maxwell equations?
How many keys does a pipe organ manual have?
What is the difference between sedimentary and igneous rock?
How do I create a systemd timer?
What is the Reynolds number?
Who was the architect of the Parthenon?
How does a refrigerator compressor work?
What is a covariant return type?
Which gas makes up most of the atmosphere of Titan?
How do I validate an IBAN checksum?
What is the boiling point of nitrogen?
What is the difference between a virus and a prion?
How do I calculate the hypotenuse?
What is the function of ribosomes?
Which empire built Machu Picchu?
How do I stream a response with server-sent events?
What is Gödel numbering?
How is sea salt harvested from brine?
What is the difference between UTF-8 and UTF-16?
What is an eclipse season?
How do I tune the shared buffers of a database?
What is the French word for squirrel?
How do I solve a quadratic equation?
Which particle mediates the strong force?
What is the binary representation of 173?
How do I authenticate against LDAP?
What is the depth of Lake Baikal?
How do glaciers form moraines?
Which compiler flag enables link time optimisation?
What is a pangram?
How do I set an environment variable permanently in fish?
What is the standard enthalpy of formation?
Wie berechnet man die Determinante einer Matrix?
Was ist die Hauptstadt von Burkina Faso?
Wie funktioniert ein Dieselmotor?
Quelle est la formule de l'acide nitrique ?
Comment fonctionne un accélérateur de particules ?
¿Cuál es la masa molar del cloruro de sodio?
¿Cómo se calcula la raíz cuadrada a mano?
Qual è la capitale del Kazakistan?
Hoe werkt een kernreactor?
Mikä on Suomen pisin joki?
如何配置防火墙规则？
光速是多少？
水の沸点は何度ですか？
`
  .trim()
  .split("\n");
